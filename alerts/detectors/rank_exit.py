"""rank_exit: a rank ended badly, or the whole attempt did. The first failure is the origin; what follows it is consequence.

torchrun stops the other ranks after a failure, and the launcher stops all of them on request: those exits
say nothing. A rank whose exit status could not be learnt counts as crashed where it was in the middle of a
step; an attempt that failed before any step is a start-up failure.
"""

from datetime import datetime, timedelta

from alerts.detectors.verdict import Verdict, key_of
from alerts.snapshot import AttemptLook, RankExit, RankLook, RunLook, Snapshot
from pipeline.catalog.faults import RANK_CRASH, STARTUP_FAILURE
from pipeline.records import FindingTransition

NAME = "rank_exit"
STALE = timedelta(minutes=10)  # a failure that is older was not ours to handle: it is closed, not replayed
TOGETHER = timedelta(seconds=1)  # exits this close are told apart by how they ended, not by when
STOP_SIGNALS = ("-15", "-2")
SYMPTOM = ("-6",)  # SIGABRT: what a watchdog does about somebody else's failure


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each attempt that failed, or in which a rank did, and nobody asked for it."""
    judged = (attempt for run in snapshot.runs for attempt in run.attempts if _judged(run, attempt, now))
    return [verdict for attempt in judged if (verdict := _verdict(snapshot, attempt, now))]


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why the finding is over: another attempt took over, or the run finished. None: it is not, or cannot be told."""
    run = snapshot.run(finding.run)
    return replaced(run, finding.attempt) if run else None


def replaced(run: RunLook, attempt: str) -> str | None:
    """What took the place of a failed attempt, in words; None while nothing did."""
    if run.state == "finished":
        return "the run finished"
    if run.state == "stopped":
        return "the run was stopped"
    mine = run.attempt(attempt)
    if mine and run.current and run.current.launch > mine.launch and run.current.state != "issued":
        return f"attempt {run.current.attempt} took its place"
    return None


def _judged(run: RunLook, attempt: AttemptLook, now: datetime) -> bool:
    if attempt.ended_at and now - attempt.ended_at > STALE:
        return False
    return attempt.state != "issued" and not run.abandoned and (run.state == "started" or attempt.failed)


def _verdict(snapshot: Snapshot, attempt: AttemptLook, now: datetime) -> Verdict | None:
    failures = [e for e in snapshot.exits_of(attempt.attempt) if _failed(e, attempt, snapshot)]
    if failures:
        first = origin(failures)
        reason = f"rank {first.rank} {_how(first)}" if first.rank is not None else f"a rank {_how(first)}"
        return _make(snapshot, attempt, first, reason, first.at, failures, 1.0 if first.code else 0.8)
    if attempt.failed:
        ended = attempt.ended_at or now
        reason = f"the command ended with {attempt.exit_code}; {attempt.reason}"
        return _make(snapshot, attempt, None, reason.rstrip("; "), ended, [], 0.5)
    return None


def origin(failures: list[RankExit]) -> RankExit:
    """The failure that the others followed from: the first one, or among those that came together the least like a reaction."""
    first = min(e.at for e in failures)
    together = [e for e in failures if e.at - first <= TOGETHER]
    return min(together, key=lambda e: (_reaction(e), e.at, e.rank if e.rank is not None else 0))


def _reaction(e: RankExit) -> int:
    """0 for a death that no peer can cause, more for what may be an answer to one."""
    if e.code in STOP_SIGNALS:
        return 4
    if e.code in SYMPTOM:
        return 2
    if e.code.startswith("-"):
        return 0
    return 1 if e.code else 3


def _failed(e: RankExit, attempt: AttemptLook, snapshot: Snapshot) -> bool:
    if e.stopped_by or e.code == "0" or (attempt.stopping_at and e.at >= attempt.stopping_at):
        return False
    if e.code or attempt.failed:
        return True
    last = next((r for r in snapshot.ranks_of(attempt.attempt) if r.rank == e.rank), None)
    return last is not None and _died_at_work(last, e)


def _died_at_work(last: RankLook, e: RankExit) -> bool:
    """The last look at the rank came after its end, or saw it gone, and found it in the middle of a step."""
    return last.in_step and (last.gone or last.at >= e.at)


def _make(
    snapshot: Snapshot,
    attempt: AttemptLook,
    first: RankExit | None,
    reason: str,
    onset: datetime,
    failures: list[RankExit],
    confidence: float,
) -> Verdict:
    early = _at_start(snapshot, attempt, onset)
    return Verdict(
        key=key_of(NAME, f"attempt:{attempt.attempt}", attempt.run),
        detector=NAME,
        fault=STARTUP_FAILURE if early else RANK_CRASH,
        run=attempt.run,
        attempt=attempt.attempt,
        node=(first.node if first else "") or attempt.node,
        rank=first.rank if first else None,
        onset=onset,
        confidence=confidence,
        reason=f"{reason}, before any step was seen" if early else reason,
        evidence={
            "origin": {"code": first.code, "phase": _phase(snapshot, first)} if first else {},
            "exits": [{"rank": e.rank, "node": e.node, "code": e.code, "at": e.at.isoformat(), "error": e.error} for e in failures[:16]],
            "attempt": {"state": attempt.state, "exit_code": attempt.exit_code, "reason": attempt.reason},
        },
    )


def _phase(snapshot: Snapshot, e: RankExit) -> str:
    """What the rank did when it was last seen."""
    return next((r.phase for r in snapshot.ranks_of(e.attempt) if r.rank == e.rank and r.in_step), "")


def _at_start(snapshot: Snapshot, attempt: AttemptLook, onset: datetime) -> bool:
    """No step was completed. A command that tells us no steps is at its start for `start_limit` seconds."""
    if snapshot.stepped(attempt.attempt):
        return False
    if any(r.step is not None for r in snapshot.ranks_of(attempt.attempt)):
        return True
    began = attempt.began_at
    return began is None or onset - began <= timedelta(seconds=snapshot.detect.start_limit)


def _how(e: RankExit) -> str:
    if e.signal or e.code.startswith("-"):
        return f"was killed by {e.signal or 'signal ' + e.code.removeprefix('-')}"
    what = f"exited with {e.code}" if e.code else "is gone, in the middle of its work"
    return f"{what}: {e.error}" if e.error else what
