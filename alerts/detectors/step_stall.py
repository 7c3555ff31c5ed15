"""step_stall: no rank of a running attempt makes progress, for longer than this run ever needs.

A hang is that *no* rank moves, so the age that counts is the smallest over the ranks, and only of ranks whose
telemetry is fresh. It must hold as the agent saw it (late telemetry is no stall) and as we see it (a clock
that stepped is none either). A rank that some signal has stopped needs no such patience: it will not come back.
"""

from datetime import datetime, timedelta

from alerts.detectors.rank_exit import replaced
from alerts.detectors.stall_limit import BETWEEN, Limit, limit
from alerts.detectors.verdict import Verdict, key_of
from alerts.diagnosis.localise import localise, stopped
from alerts.snapshot import FRESH, AttemptLook, RankLook, RunLook, Snapshot
from pipeline.records import FindingTransition

NAME = "step_stall"


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each attempt that stands still."""
    found = [_verdict(snapshot, attempt, now) for _, attempt in snapshot.active() if _judged(snapshot, attempt)]
    return [verdict for verdict in found if verdict]


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why the stall is over: a rank moved, another attempt took over, the run finished. None: it is not, or cannot be told."""
    run = snapshot.run(finding.run)
    if run is None:
        return None
    return replaced(run, finding.attempt) or _moved(finding, snapshot, run, now)


def _moved(finding: FindingTransition, snapshot: Snapshot, run: RunLook, now: datetime) -> str | None:
    attempt = run.attempt(finding.attempt)
    if attempt is None or attempt.state != "running" or finding.onset is None:
        return None
    for r in _fresh(snapshot, attempt):
        moved_at = now - timedelta(seconds=r.still or 0.0)
        if r.still is not None and moved_at > max(finding.at, finding.onset):
            return f"rank {r.rank} moves again"
    return None


def _judged(snapshot: Snapshot, attempt: AttemptLook) -> bool:
    """Running, and not failing already: ranks that wait for a dead one are no second fault."""
    if attempt.state not in ("starting", "running"):
        return False
    return not any(e.code not in ("", "0") and not e.stopped_by for e in snapshot.exits_of(attempt.attempt))


def _fresh(snapshot: Snapshot, attempt: AttemptLook) -> list[RankLook]:
    return [r for r in snapshot.ranks_of(attempt.attempt) if r.fresh]


def _verdict(snapshot: Snapshot, attempt: AttemptLook, now: datetime) -> Verdict | None:
    ranks = snapshot.ranks_of(attempt.attempt)
    looks = [(r, r.still, r.still_at_look) for r in ranks if r.fresh]
    ages = [(still, at_look) for _, still, at_look in looks if still is not None and at_look is not None]
    if not ages or len(ages) < len(looks):
        return None  # nobody is heard, or somebody is who has not begun
    still, as_seen = min(a for a, _ in ages), min(a for _, a in ages)
    phases = [r.phase if r.in_step else BETWEEN for r in ranks]
    allowed = limit(snapshot.detect, snapshot.pace.get(attempt.run), phases, stepped=snapshot.stepped(attempt.attempt))
    if still > allowed.seconds and as_seen > allowed.seconds:
        return _make(attempt, ranks, _silent(snapshot, attempt), still, allowed, now)
    if still > snapshot.detect.stall_floor and stopped([r for r in ranks if r.fresh]):
        floor = Limit(snapshot.detect.stall_floor, "a stopped process does not come back by itself")
        return _make(attempt, ranks, set(), still, floor, now)
    return None


def _silent(snapshot: Snapshot, attempt: AttemptLook) -> set[str]:
    """Of several nodes those whose launcher and ranks are not heard now, while others' are: it is not we who are deaf."""
    heard = {one.node for one in snapshot.launchers if one.run == attempt.run and one.age <= FRESH}
    heard |= {r.node for r in _fresh(snapshot, attempt)}
    return set(attempt.nodes) - heard


def _make(attempt: AttemptLook, ranks: list[RankLook], silent: set[str], still: float, allowed: Limit, now: datetime) -> Verdict:
    where = localise(ranks, silent)
    deaf = [r.rank for r in ranks if not r.fresh]
    return Verdict(
        key=key_of(NAME, f"attempt:{attempt.attempt}", attempt.run),
        detector=NAME,
        fault=where.fault,
        run=attempt.run,
        attempt=attempt.attempt,
        node=where.node,
        rank=where.rank,
        onset=now - timedelta(seconds=still),
        confidence=where.confidence,
        reason=f"no rank has moved for {still:.1f} s (limit {allowed.seconds:.1f} s: {allowed.reason}); {where.reason}",
        evidence={
            **where.evidence,
            "suspects": list(where.ranks),
            "limit_seconds": allowed.seconds,
            "limit_reason": allowed.reason,
            "not_heard": deaf,
        },
    )
