"""What to do about an incident: pure, with its reason. Restart in place while the limits last, then end the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from alerts.snapshot import AttemptLook, RunLook
from pipeline.catalog.actions import END_RUN, RESTART_RUN, ActionKind
from pipeline.catalog.faults import HOST_DOWN, NODE_LEFT, RESTART_LOOP, STARTUP_FAILURE, Fault
from pipeline.settings import RecoverySettings

MAX_TRIES = 2  # actions on one attempt that came to nothing, before a person is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A restart of the run inside the window: what it answered, and how far the attempt that it ended had come."""

    attempt: str
    new_attempt: str
    at: datetime
    fault: str
    node: str
    rank: int | None
    last_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An attempt that failed. `tries`: actions on it that failed or expired; `last_step`: how far it had come.

    `short`: why the nodes that are left do not suffice; "" where they do.
    """

    fault: Fault
    run: RunLook
    attempt: AttemptLook
    node: str
    rank: int | None
    last_step: int | None
    restarts: Sequence[Restart]
    tries: int
    short: str
    settings: RecoverySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What should be done. `fault` is set where the incident is now another one: a loop."""

    kind: ActionKind
    reason: str
    attempt: str
    launch: int = 0
    new_attempt: str = ""
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing is done, and why."""

    reason: str


def decide(case: Case, now: datetime) -> Proposal | Refusal:
    """The action for `case`, or why there is none."""
    if case.fault.first_action is None:
        return Refusal(f"nothing is done about {case.fault.name}")
    if case.short:
        return Refusal(case.short)
    if case.tries >= MAX_TRIES:
        return Refusal(f"{case.tries} actions on {case.attempt.attempt} came to nothing")
    if spent := _spent(case, now):
        return Proposal(kind=END_RUN, reason=spent, attempt=case.attempt.attempt, fault=RESTART_LOOP)
    launch = case.attempt.launch + 1
    return Proposal(
        kind=RESTART_RUN,
        reason=f"{case.fault.summary.lower()}: {_how(case)}",
        attempt=case.attempt.attempt,
        launch=launch,
        new_attempt=f"{case.run.run}-{launch}",
    )


def restarted_where(fault: str, node: str) -> str:
    """On which nodes a run is restarted for a `fault` at `node`, in words that follow "restart the run"."""
    if fault == HOST_DOWN.name:
        return f"without {node}"
    return "on the nodes whose launchers are ready," if fault == NODE_LEFT.name else "in place"  # ready: also one that began anew


def _how(case: Case) -> str:
    return f"restart {restarted_where(case.fault.name, case.node)} from the last complete checkpoint"


def _spent(case: Case, now: datetime) -> str | None:
    """Which limit does not allow another restart; None while all do."""
    limits = case.settings
    recent = [r for r in case.restarts if (now - r.at).total_seconds() < limits.window]
    hours = limits.window / 3600
    if len(recent) >= limits.max_restarts_per_run:
        return f"{len(recent)} restarts of this run in {hours:g} h; {limits.max_restarts_per_run} are allowed"
    if case.fault is STARTUP_FAILURE and any(r.new_attempt == case.attempt.attempt and r.fault == STARTUP_FAILURE.name for r in recent):
        return "it failed at the start again; a start-up failure is restarted once"
    same = [r for r in recent if _same_failure(r, case)]
    if len(same) >= limits.max_restarts_per_signature:
        where = f"rank {case.rank} on {case.node}" if case.rank is not None else case.node or "this run"
        return f"same failure {len(same) + 1} times in {hours:g} h: {case.fault.name} at {where} or at the same step"
    return None


def _same_failure(r: Restart, case: Case) -> bool:
    """The same fault, at the same place or without any progress since: what code that always fails looks like."""
    if r.fault != case.fault.name:
        return False
    stuck = r.last_step is not None and case.last_step is not None and case.last_step <= r.last_step
    return stuck or (r.node, r.rank) == (case.node, case.rank)
