"""What happens next to an incident, from what is known about its run: pure, one transition at a time."""

from dataclasses import dataclass
from datetime import datetime

from alerts.incidents.lifecycle import State, move
from alerts.snapshot import AttemptLook, RunLook
from pipeline.catalog.actions import RESTART_RUN
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about an incident now."""

    findings: tuple[FindingTransition, ...]  # its open ones
    cleared: str  # why the last one was cleared; "" where none was
    settled: tuple[datetime, datetime] | None = None  # when the last one went, and until when it may come back
    run: RunLook | None
    action: ActionTransition | None  # its newest
    awaited: datetime | None = None  # until when the cause may be found that its error has told of
    recovered_at: datetime | None = None  # the next attempt's first completed step
    caught_up_at: datetime | None = None


LIVE_ACTION = frozenset({"issued", "accepted", "succeeded"})
DEAD_ACTION = frozenset({"failed", "expired", "cancelled"})


def advance(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    """The next transition of an incident, or None where it stays as it is. To be repeated until None."""
    if last.new_state == State.RESOLVED:
        return _told_late(last, facts, now)
    if facts.run and facts.run.state == "finished" and not last.next_attempt and (started := _started(last, facts, now)):
        return started  # it may have come and gone between two looks
    if facts.run and facts.run.state != "started" and not (facts.recovered_at and not last.recovered_at):
        return _run_over(last, facts, facts.run, now)
    match State(last.new_state):
        case State.OPEN:
            return _from_open(last, facts, now)
        case State.MITIGATING:
            return _from_mitigating(last, facts, now)
        case _:
            return _from_recovering(last, facts, now)


def next_attempt(last: IncidentTransition, run: RunLook | None) -> AttemptLook | None:
    """The newest attempt of the run, where it came after the one that failed and its command was started."""
    if run is None or run.current is None:
        return None
    failed = run.attempt(last.attempt)
    newest = run.current
    return newest if failed and newest.launch > failed.launch and newest.state != "issued" else None


def _told_late(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    """A run may be at its end before its steps are told of."""
    if last.recovered_at is None and facts.recovered_at is not None:
        return move(last, State.RESOLVED, f"attempt {last.next_attempt} completed its first step", now, recovered_at=facts.recovered_at)
    if last.caught_up_at is None and facts.caught_up_at is not None:
        return move(last, State.RESOLVED, "back at the step before the failure", now, caught_up_at=facts.caught_up_at)
    return None


def _run_over(last: IncidentTransition, facts: Facts, run: RunLook, now: datetime) -> IncidentTransition | None:
    """A run that finished or was stopped needs nobody; one that failed for good needs somebody to say so."""
    if run.state == "finished":
        return _resolve(last, facts, "the run finished", now)
    if run.state == "stopped":
        return _resolve(last, facts, f"the run was stopped: {run.reason}"[:500], now)
    if not facts.findings:
        return _resolve(last, facts, facts.cleared or "the run ended", now)
    if person := last.acknowledged_by:
        return _resolve(last, facts, f"the run ended; {person} knows", now)
    if last.new_state != State.OPEN:
        return move(last, State.OPEN, f"the run {run.state}: {run.reason}"[:500], now)
    return None


def _from_open(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    action = facts.action
    started = _started(last, facts, now)
    if started:
        return started
    if action and action.new_state in LIVE_ACTION and _due(facts, action):
        return move(last, State.MITIGATING, f"{action.kind} {action.new_state}", now, acted_at=last.acted_at or action.at)
    if not facts.findings and (next_attempt(last, facts.run) is None or last.recovered_at is not None):
        return _settle(last, facts, now)
    return None


def _settle(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    """What may come back at once is not over yet; where it does not, it was over when it went."""
    gone, until = facts.settled or (None, now)
    if now < until:
        return None
    return _resolve(last, facts, facts.cleared or "nothing is found any more", now, gone)


def _from_mitigating(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    action = facts.action
    started = _started(last, facts, now)
    if started:
        return started
    if action and action.new_state in DEAD_ACTION:
        return move(last, State.OPEN, f"{action.kind} {action.new_state}: {action.reason}", now)
    return None


def _from_recovering(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    again = [f for f in facts.findings if f.attempt == last.next_attempt]
    if facts.recovered_at and last.recovered_at is None:
        return move(last, State.RECOVERING, f"attempt {last.next_attempt} completed its first step", now, recovered_at=facts.recovered_at)
    if last.recovered_at and not facts.findings:
        if facts.awaited and now < facts.awaited:
            return None
        over_at = last.recovered_at if facts.awaited else None
        return _resolve(last, facts, f"recovered: attempt {last.next_attempt} makes progress", now, over_at)
    if again:
        return move(last, State.OPEN, f"attempt {last.next_attempt} failed too: {again[0].reason}", now)
    return None


def _started(last: IncidentTransition, facts: Facts, now: datetime) -> IncidentTransition | None:
    """The step to recovering, once a newer attempt than any that failed was started."""
    newest = next_attempt(last, facts.run)
    if newest is None or any(f.attempt == newest.attempt for f in facts.findings):
        return None
    acted_at = last.acted_at or newest.began_at
    return move(last, State.RECOVERING, f"attempt {newest.attempt} was started", now, next_attempt=newest.attempt, acted_at=acted_at)


def _due(facts: Facts, action: ActionTransition) -> bool:
    """A restart counts for the attempt that stands now; one that was carried out on an earlier attempt is history."""
    if action.kind != RESTART_RUN.name:
        return action.new_state != "succeeded"
    current = facts.run.current if facts.run else None
    return current is None or action.attempt == current.attempt


def _resolve(last: IncidentTransition, facts: Facts, reason: str, now: datetime, over_at: datetime | None = None) -> IncidentTransition:
    at = over_at or max(now, last.at)
    return move(last, State.RESOLVED, reason, now, resolved_at=at, caught_up_at=last.caught_up_at or facts.caught_up_at)
