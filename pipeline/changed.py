"""What differs between two attempts, and which attempt is good enough to be compared with. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import Final

from pipeline.catalog.facts import COMMIT, DIFF, FOLDER, NODES, FactGroup, group
from pipeline.records import AttemptFacts

FIRST_STEPS: Final = 10  # an attempt that fails within these fails by what it was started with as likely as not
NOT_KNOWN, NOT_SET, NOT_INSTALLED = "not known", "not set", "not installed"

Facts = Mapping[str, str]
_ORDER: Final = {g.value: n for n, g in enumerate(FactGroup)}
_ABSENT: Final[Mapping[str, str]] = {FactGroup.ENVIRONMENT: NOT_SET, FactGroup.PACKAGE: NOT_INSTALLED}
_FIRST: Final = (COMMIT, DIFF, "code.argv", "package.torch", "package.python", "driver.nvidia", "driver.nccl")  # of each group


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same; None where it is absent on that side."""

    name: str
    before: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An attempt that may be compared with: how far it came, and how it ended (None: not yet, or not known)."""

    run: str
    attempt: str
    began_at: datetime
    steps: int  # completed, restarts inside it included
    exit_code: int | None
    recorded: bool  # whether facts of it are kept


@dataclass(frozen=True, slots=True)
class Changed:
    """What differs between `attempt` and the last good one. `good` is None where there is none, and `reason` says why in any case."""

    run: str
    attempt: str
    good: Candidate | None
    differences: tuple[Difference, ...]
    reason: str


def merged(rows: Iterable[AttemptFacts]) -> dict[str, str]:
    """The facts of one attempt over all its nodes: where they do not agree, the text says which node has what."""
    by_node = _by_node(rows)
    if not by_node:
        return {}
    names = sorted(set().union(*by_node.values()))
    return {name: _agreed(name, by_node) for name in names} | {NODES: ", ".join(sorted(by_node))}


def compared(before: Sequence[AttemptFacts], now: Sequence[AttemptFacts]) -> list[Difference]:
    """What differs between two attempts, each over all its nodes, in the order of `difference`.

    That other nodes take part is told as the nodes alone: a fact differs where a node of both has it otherwise, or where a node
    that is new has what no node had before. A node that tells nothing of a group of facts was not read there.
    """
    old, new = _by_node(before), _by_node(now)
    return [d for d in difference(merged(before), merged(now)) if d.name == NODES or d.name.endswith(".all") or _differs(d.name, old, new)]


def _differs(name: str, old: Mapping[str, Facts], new: Mapping[str, Facts]) -> bool:
    of = group(name)
    before = {node: facts.get(name) for node, facts in old.items() if name in facts or not _unread(of, facts)}
    now = {node: facts.get(name) for node, facts in new.items() if name in facts or not _unread(of, facts)}
    return any(value != before[node] if node in before else value not in before.values() for node, value in now.items())


def _unread(of: str, facts: Facts) -> bool:
    return of != FactGroup.ENVIRONMENT and _blind(of, facts)


def _by_node(rows: Iterable[AttemptFacts]) -> dict[str, Facts]:
    return {row.node: row.facts for row in sorted(rows, key=lambda r: r.at)}


def _agreed(name: str, by_node: Mapping[str, Facts]) -> str:
    nodes: dict[str, list[str]] = {}
    for node in sorted(by_node):
        nodes.setdefault(by_node[node].get(name, absent(name)), []).append(node)
    return next(iter(nodes)) if len(nodes) == 1 else "; ".join(f"{value} on {', '.join(where)}" for value, where in nodes.items())


def absent(name: str) -> str:
    """What it means that a fact is not there."""
    return _ABSENT.get(group(name), NOT_KNOWN)


def difference(before: Facts, now: Facts) -> list[Difference]:
    """The facts that are not the same, in the order in which a person looks: code, packages, driver, environment, the rest.

    A group of which one side tells nothing at all was not read there, rather than emptied: it is one difference, not one for each name.
    """
    found = [Difference(n, before.get(n), now.get(n)) for n in before.keys() | now.keys() if before.get(n) != now.get(n)]
    blind = {g for g in {group(d.name) for d in found} - {FactGroup.ENVIRONMENT.value} if _blind(g, before) != _blind(g, now)}
    seen = [d for d in found if group(d.name) not in blind]
    seen += [Difference(f"{g}.all", _told(g, before), _told(g, now)) for g in blind]
    return sorted(seen, key=lambda d: (_ORDER.get(group(d.name), len(_ORDER)), *_place(d.name)))


def _blind(of: str, facts: Facts) -> bool:
    return not any(group(name) == of and not name.endswith(".trouble") for name in facts)


def _told(of: str, facts: Facts) -> str | None:
    count = sum(group(name) == of for name in facts)
    return facts.get(f"{of}.trouble") if _blind(of, facts) else f"{count} recorded"


def _place(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST)), name


# --- the last good one -----------------------------------------------------------------------


def is_good(candidate: Candidate) -> bool:
    """Whether an attempt shows that what it ran with works.

    It completed FIRST_STEPS steps, however it ended: what broke it came later than its start. Or it completed a
    step and its command ended well: short runs count too. One that failed before is no yardstick.
    """
    return candidate.steps >= FIRST_STEPS or (candidate.steps > 0 and candidate.exit_code == 0)


def last_good(candidates: Sequence[Candidate], before: datetime) -> Candidate | None:
    """Of the attempts that began before `before` and whose facts are kept, the newest good one."""
    good = [c for c in candidates if c.recorded and c.began_at < before and is_good(c)]
    return max(good, key=lambda c: c.began_at, default=None)


def program(command: str) -> str:
    """What a command runs, without its options: the first script or module in it, else its first word."""
    words = command.split()
    module = next((words[n + 1] for n, w in enumerate(words[:-1]) if w == "-m" and "torch.distributed" not in words[n + 1]), "")
    script = next((w for w in words if w.endswith((".py", ".sh"))), "")
    return PurePosixPath(script).name or module or (words[0] if words else "")


def as_run(rows: Iterable[AttemptFacts], run: str) -> list[AttemptFacts]:
    """The facts as they would be under the name `run`: that each run writes to a folder of its own name is no change."""
    return [
        replace(row, facts={n: re.sub(rf"(?<![\w.-]){re.escape(row.run)}(?![\w-])", lambda _: run, v) for n, v in row.facts.items()})
        for row in rows
    ]


def same_folder(before: Facts, now: Facts) -> bool:
    """Whether two attempts were started in one folder, as far as that is known."""
    return FOLDER in before and before[FOLDER] == now.get(FOLDER)


# --- for a person ----------------------------------------------------------------------------


def only_differing(before: str, now: str) -> tuple[str, str]:
    """Of two long texts the words that are not the same, with those that are left out as "…"."""
    old, new = before.split(), now.split()
    sides: tuple[list[str], list[str]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words in zip(sides, (old[a:b], new[c:d]), strict=True):
            side += ["…"] if tag == "equal" else words
    return " ".join(sides[0]), " ".join(sides[1])


_LOOK: Final[Mapping[str, str]] = {
    FactGroup.CODE: "The code or its command line changed: look there first.",
    FactGroup.PACKAGE: "The code is the same, installed packages are not: look there first.",
    FactGroup.DRIVER: "Code and packages are the same, a driver is not: look there first.",
    FactGroup.ENVIRONMENT: "Code, packages and drivers are the same; the environment is not: look there first.",
    FactGroup.PLACE: "It ran with the same on other nodes: look at the nodes first.",
    FactGroup.START: "It ran with the same, and began elsewhere: suspect the machines, the network or the data before the code.",
}


def first_look(changed: Changed) -> str:
    """What a person should look at first, in one sentence."""
    if changed.good is None:
        return ""
    groups = [group(d.name) for d in changed.differences]
    told = next((_LOOK[g] for g in groups if g in _LOOK), "")
    return told or "Nothing that is recorded differs: suspect the machines, the network or the data before the code."
