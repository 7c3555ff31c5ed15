"""A run's frame from the records of its life. Pure."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.catalog.rules import halts
from pipeline.clock import to_micros
from pipeline.queries.run_exits import RankExit
from pipeline.queries.run_first_steps import StepRange
from pipeline.records import AttemptTransition, IncidentTransition, RunTransition
from slo.history import Attempt, FirstStep, Frame, Outage

RUN_ENDED = frozenset(RunTransition.states) - {"started"}


def frame(
    run: Sequence[RunTransition],
    attempts: Sequence[AttemptTransition],
    incidents: Sequence[IncidentTransition],
    steps: Sequence[StepRange],
    exits: Sequence[RankExit],
    ranks: int,
    now: datetime,
) -> Frame:
    """The frame of the run whose transitions these are, those of `run` and `incidents` oldest first; `run` must not be empty.

    A run counts as at least one rank wide. What lies before its start or after its end is pulled to there.
    """
    start = to_micros(run[0].at)
    ended = run[-1].new_state in RUN_ENDED
    end = max(start, to_micros(run[-1].at if ended else now))
    seen = {s.rank for s in steps} | {e.rank for e in exits}
    return Frame(
        run=run[0].run,
        start=start,
        end=end,
        ended=ended,
        ranks=max(1, ranks, *(rank + 1 for rank in seen), 0),
        attempts=_attempts(attempts, steps, start, end),
        outages=_outages(incidents),
        firsts={(s.attempt, s.rank): FirstStep(s.step, to_micros(s.started_at), to_micros(s.ended_at)) for s in steps},
        exits={(e.attempt, e.rank): to_micros(e.at) for e in exits},
    )


def _attempts(transitions: Sequence[AttemptTransition], steps: Sequence[StepRange], start: int, end: int) -> tuple[Attempt, ...]:
    """Launches that were begun, and inner restarts that show only by their steps, in order of their start."""
    by_name: dict[str, list[AttemptTransition]] = {}
    for t in transitions:
        if t.new_state != "issued":
            by_name.setdefault(t.attempt, []).append(t)
    launched = {name: _attempt(name, ts) for name, ts in by_name.items()}
    found = list(launched.values())
    for name in sorted({s.attempt for s in steps} - by_name.keys()):
        launch = launched.get(name.rpartition(".")[0])
        begin = min(to_micros(s.started_at) for s in steps if s.attempt == name)
        found.append(Attempt(name, begin, launch.end if launch else None, launch.exit_code if launch else None))
    placed = [
        Attempt(a.name, min(max(a.start, start), end), None if a.end is None else min(max(a.end, start), end), a.exit_code) for a in found
    ]
    return tuple(sorted(placed, key=lambda a: (a.start, a.name)))


def _attempt(name: str, transitions: Sequence[AttemptTransition]) -> Attempt:
    ends = [t for t in transitions if t.new_state == "ended"]
    return Attempt(
        name,
        min(to_micros(t.at) for t in transitions),
        max(to_micros(t.at) for t in ends) if ends else None,
        next((t.exit_code for t in ends if t.exit_code != 0), 0) if ends else None,
    )


def _outages(transitions: Sequence[IncidentTransition]) -> tuple[Outage, ...]:
    """The last word on each incident that halts its run."""
    last = {t.incident: t for t in transitions}
    opened = {t.incident: t.at for t in reversed(transitions)}
    return tuple(
        Outage(
            incident=t.incident,
            attempt=t.attempt,
            onset=to_micros(t.onset or t.detected_at or opened[t.incident]),
            detected=_micros(t.detected_at or opened[t.incident]),
            located=_micros(t.located_at),
            acted=_micros(t.acted_at),
            recovered=_micros(t.recovered_at),
            resolved=_micros(t.resolved_at),
            next_attempt=t.next_attempt,
        )
        for t in last.values()
        if halts(t.fault, t.attempt)
    )


def _micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)
