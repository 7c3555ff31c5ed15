"""How names of other programs' pages stand for metrics of the catalogue. Pure data types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.catalog.metrics import Family


class Name(NamedTuple):
    """`foreign`, the name of a sample as it stands on the page, is `metric` of the catalogue once multiplied by `scale` and divided by
    `over` (57 % is 57 / 100, which 57 x 0.01 is not).

    `where` holds patterns that labels of the sample must match whole. Samples of one device that are the same metric are added up.
    """

    foreign: str
    metric: str
    scale: float = 1.0
    over: float = 1.0
    where: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, eq=False)
class NameMap:
    """The names by which `source` (a program, its documentation) tells of devices of `family`.

    `identity` says, for each key of the family's identity, how it is put together from the sample's labels: templates as "{device}:{port}",
    of which the first counts whose labels are all there; `{target}` is the target's name in the settings. `node` needs none: it is the
    target's label `node`, else this node. `attributes` likewise, where they are there. A device is left out where a label matches its
    pattern in `never`. `blanks` are the values, from and up to, as they stand on the page, that say that there is none. `since` names the
    sample that says when the counters began (seconds since 1970), "" where none does.
    """

    source: str
    family: Family
    identity: Mapping[str, tuple[str, ...]]
    names: tuple[Name, ...]
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)
    since: str = ""
    blanks: tuple[tuple[float, float], ...] = ()
