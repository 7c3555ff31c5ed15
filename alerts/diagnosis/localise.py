"""Which rank holds the others up: judged from the live cells of a stalled attempt.

The one that waits in a collective is the victim; the one that never got there is the origin. Where the
cells do not tell, the answer says so: one of k ranks, with confidence 1/k, and none is named.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alerts.snapshot import STOPPED, RankLook
from pipeline.catalog.faults import COLLECTIVE_HANG, HOST_DOWN, RANK_CRASH, RANK_STOPPED, Fault
from pipeline.catalog.layers import Phase

WAITING = frozenset({Phase.COMM_WAIT, Phase.BACKWARD, Phase.WEIGHT_SYNC})  # where a rank waits for its peers
CONFIRMED = 0.9  # seconds for which a process must have been stopped: a single look may catch a passing debugger


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a stall comes from. `ranks` are the suspects; `rank` and `node` are set where there is one alone."""

    fault: Fault
    ranks: tuple[int, ...]
    rank: int | None
    node: str
    confidence: float
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


def localise(ranks: Sequence[RankLook], silent: Collection[str] = ()) -> Location:
    """The origin of the stall that `ranks`, all of one attempt, are in. Of nodes that are `silent` neither agent nor launcher is heard."""
    cells = {"ranks": [_cell(r) for r in sorted(ranks, key=lambda r: r.rank)[:64]]}
    if lost := [r for r in ranks if r.node in silent]:
        return _unheard(lost, cells)
    for rule in (_gone, _stopped, _sleeping, _behind, _not_waiting):
        suspects, fault, reason, confidence = rule(ranks)
        if suspects:
            return _name(suspects, fault, reason, confidence, cells)
    return _name(ranks, COLLECTIVE_HANG, "all ranks look alike", 1.0, cells)


_Found = tuple[Sequence[RankLook], Fault, str, float]


def _unheard(lost: Sequence[RankLook], evidence: Mapping[str, Any]) -> Location:
    """The ranks of nodes that fell silent when the stall began: no rank is the origin, their host is."""
    nodes = sorted({r.node for r in lost})
    who = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes[:8])}{', …' if len(nodes) > 8 else ''})"
    return Location(
        fault=HOST_DOWN,
        ranks=tuple(sorted(r.rank for r in lost)),
        rank=None,
        node=nodes[0] if len(nodes) == 1 else "",
        confidence=0.8 / len(nodes),
        reason=f"neither agent nor launcher of {who} is heard any more, while the others wait",
        evidence=evidence,
    )


def _gone(ranks: Sequence[RankLook]) -> _Found:
    return [r for r in ranks if r.gone and r.in_step], RANK_CRASH, "its process is gone", 0.9


def stopped(ranks: Sequence[RankLook]) -> list[RankLook]:
    """The ranks that have been stopped for longer than a passing look."""
    return [r for r in ranks if r.process_state in STOPPED and r.state_age >= CONFIRMED]


def _stopped(ranks: Sequence[RankLook]) -> _Found:
    return stopped(ranks), RANK_STOPPED, "its process is stopped (state T)", 1.0


def _sleeping(ranks: Sequence[RankLook]) -> _Found:
    """A rank in uninterruptible sleep while the others only wait: its kernel or its storage holds it."""
    found = [r for r in ranks if r.process_state == "D" and not _waits(r)]
    others_wait = all(_waits(r) for r in ranks if r not in found)
    return (
        found if others_wait and len(found) < len(ranks) else [],
        COLLECTIVE_HANG,
        "its process is in uninterruptible sleep (state D)",
        0.8,
    )


def _behind(ranks: Sequence[RankLook]) -> _Found:
    """The ranks that are steps behind the others."""

    def progress(r: RankLook) -> tuple[int, int]:
        return (0 if r.completed is None else r.completed + 1, 0 if r.step is None else r.step + 1)

    return _odd_ones(ranks, lambda r: progress(r) == min(map(progress, ranks))), COLLECTIVE_HANG, "it is steps behind the others", 0.9


def _not_waiting(ranks: Sequence[RankLook]) -> _Found:
    """The ranks that never reached what the others wait in."""
    found = _odd_ones(ranks, lambda r: not _waits(r))
    where = ", ".join(sorted({r.phase or "no phase" for r in found}))
    return found, COLLECTIVE_HANG, f"it is in {where} while the others wait for it", 0.8


def _odd_ones(ranks: Sequence[RankLook], odd: Callable[[RankLook], bool]) -> list[RankLook]:
    """The ranks that are odd, where at least one is not."""
    found = [r for r in ranks if odd(r)]
    return found if len(found) < len(ranks) else []


def _waits(r: RankLook) -> bool:
    return r.phase in WAITING or r.collective != ""


def _name(suspects: Sequence[RankLook], fault: Fault, reason: str, confidence: float, evidence: Mapping[str, Any]) -> Location:
    numbers = tuple(sorted(r.rank for r in suspects))
    nodes = {r.node for r in suspects}
    alone = len(numbers) == 1
    said = (
        reason if alone else f"one of {len(numbers)} ranks ({', '.join(map(str, numbers[:8]))}{'…' if len(numbers) > 8 else ''}): {reason}"
    )
    return Location(
        fault=fault,
        ranks=numbers,
        rank=numbers[0] if alone else None,
        node=nodes.pop() if len(nodes) == 1 else "",
        confidence=confidence / max(1, len(numbers)),
        reason=f"rank {numbers[0]}: {said}" if alone else said,
        evidence=evidence,
    )


def _cell(r: RankLook) -> dict[str, Any]:
    return {
        "rank": r.rank,
        "node": r.node,
        "step": r.step,
        "completed": r.completed,
        "phase": r.phase,
        "collective": r.collective,
        "process_state": r.process_state,
        "still_seconds": None if r.still is None else round(r.still, 3),
        "at": r.at.isoformat(),
    }
