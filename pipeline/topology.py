"""Where the nodes of a cluster are: racks, switches, pods and rails, from a file. Pure but for `read`.

```yaml
switches:
  leaf-01: {nodes: "gpu-[001-050]", parent: spine-1}
  leaf-02: {nodes: [gpu-051, "gpu-[052-100]"], parent: spine-1}
  spine-1: {}
racks:
  r07: {nodes: "gpu-[001-016]"}
```

A place has nodes, or other places, beneath it; a node may lie in several (its rack, its switch). Names of places are unique in the
file, whatever their kind. JSON does as well, being YAML.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pipeline import hostlist, setting_file
from pipeline.errors import InputError, SettingsError

KINDS: Final = {"racks": "rack", "switches": "switch", "pods": "pod", "rails": "rail"}
"""What a place may be, by the key that it stands under. Of several that are equally near the first kind is named."""
_ORDER: Final = {kind: n for n, kind in enumerate(KINDS.values())}


@dataclass(frozen=True, slots=True)
class Place:
    """A rack, switch, pod or rail. `nodes` are those directly beneath it, `under` all of them, `places` the places beneath it."""

    name: str
    kind: str
    nodes: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def rank(self) -> tuple[int, int, str]:
        """The order in which places are named: the smallest first."""
        return (len(self.under), _ORDER.get(self.kind, len(_ORDER)), self.name)


@dataclass(frozen=True, slots=True)
class Topology:
    """The places by name, each after those beneath it, and of each node the names of all that it lies in, the smallest first."""

    places: Mapping[str, Place] = field(default_factory=dict)
    above: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, node: str) -> tuple[Place, ...]:
        """The places that a node lies in, the smallest first; () where the file does not name it."""
        return tuple(self.places[name] for name in self.above.get(node, ()))


def read(path: str) -> Topology:
    """The topology in the file `path`, that of no file for "". Raises SettingsError, one line that names what is wrong."""
    if not path:
        return Topology()
    given = setting_file.read(Path(path), "topology file")
    try:
        return parse(given)
    except InputError as e:
        raise SettingsError(f"{path}: {e}") from None


def parse(given: Mapping[str, Any]) -> Topology:
    """The topology that the contents of a file describe. Raises InputError."""
    found: dict[str, tuple[str, frozenset[str], str]] = {}
    for key, places in given.items():
        if key not in KINDS:
            raise InputError(f"unknown key {key}; known are {', '.join(KINDS)}")
        if not isinstance(places, dict):
            raise InputError(f"{key} must hold names of places, each with its nodes or its parent, not {_shown(places)}")
        for name, described in places.items():
            if not str(name).isprintable():
                raise InputError(f"{key}: {_shown(name)} cannot be shown as it is: give the place a name of printable characters")
            if name in found:
                raise InputError(f"{name} is a {found[name][0]} and a {KINDS[key]}: a name may stand only once")
            found[name] = (KINDS[key], *_place(f"{KINDS[key]} {name}", described))
    return _built(found)


def _place(what: str, described: Any) -> tuple[frozenset[str], str]:
    """The nodes and the parent of a place."""
    if not isinstance(described, dict):
        raise InputError(f'{what} must be like {{nodes: "gpu-[001-050]", parent: spine-1}}, not {_shown(described)}')
    if unknown := described.keys() - {"nodes", "parent"}:
        raise InputError(f"{what}: unknown key {min(unknown)}; known are nodes and parent")
    nodes, parent = described.get("nodes", []), described.get("parent", "")
    lists = nodes if isinstance(nodes, list) else [nodes]
    if not all(isinstance(one, str) for one in lists):
        raise InputError(f"{what}: nodes must be text or a list of texts, in quotes where it is a number, not {_shown(nodes)}")
    if not isinstance(parent, str):
        raise InputError(f"{what}: parent must be the name of one place, not {_shown(parent)}")
    try:
        return frozenset(name for one in lists for name in hostlist.expand(one)), parent
    except InputError as e:
        raise InputError(f"{what}: {e}") from None


def _built(found: Mapping[str, tuple[str, frozenset[str], str]]) -> Topology:
    beneath: dict[str, list[str]] = {}
    for name, (kind, _, parent) in found.items():
        if not name:
            raise InputError(f"a {kind} without a name stands in the file: give it one")
        if parent and parent not in found:
            raise InputError(f"{kind} {name}: its parent {parent} stands nowhere in the file")
        beneath.setdefault(parent, []).append(name)
    order, waiting = [], list(beneath.get("", ()))
    while waiting:
        order.append(waiting.pop())
        waiting += beneath.get(order[-1], ())
    if round_about := sorted(found.keys() - set(order)):
        raise InputError(f"{found[round_about[0]][0]} {round_about[0]}: its parents lead in a circle")
    places: dict[str, Place] = {}
    for name in reversed(order):
        kind, nodes, _ = found[name]
        below = tuple(sorted(beneath.get(name, ())))
        places[name] = Place(name, kind, nodes, nodes.union(*(places[b].under for b in below)), below)
    above: dict[str, list[str]] = {}
    for place in sorted(places.values(), key=lambda p: p.rank):
        for node in place.under:
            above.setdefault(node, []).append(place.name)
    return Topology(places, {node: tuple(names) for node, names in above.items()})


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
