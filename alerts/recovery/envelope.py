"""What goes around an action before it may touch a run: one key, the mode, a deadline, and a second look at its conditions."""

from datetime import datetime, timedelta
from typing import Any

from alerts.ids import mint
from alerts.incidents.lifecycle import State
from alerts.recovery.policy import Proposal, Refusal
from alerts.snapshot import RunLook
from alerts.transitions import LEADER, follow
from pipeline.catalog.actions import BY_NAME, RESTART_RUN, ActionKind
from pipeline.catalog.layers import ActionMode
from pipeline.records import ActionTransition, IncidentTransition

PENDING = frozenset({"proposed", "waiting"})
UNDER_WAY = frozenset({"issued", "accepted"})
FAILED = frozenset({"failed", "expired"})
REFUSED = "no action: "  # how the reason of an incident begins about which nothing is done
WITHDRAWN_BY = "pause"  # the actor who takes back, for a pause or a maintenance window, what no launcher has accepted yet
FIRST_STATE = {ActionMode.DRY_RUN: "dry_run", ActionMode.APPROVE: "waiting", ActionMode.AUTO: "issued"}


def propose(
    proposal: Proposal, incident: IncidentTransition, mode: ActionMode, *, term: int, earlier: int, node: str, now: datetime
) -> ActionTransition | Refusal:
    """The first transition of the action that `proposal` asks for; `earlier` actions of its kind on its attempt came to nothing."""
    if mode is ActionMode.OFF:
        return Refusal(f"{proposal.kind.name} is switched off; it would have been done: {proposal.reason}")
    key = f"{proposal.kind.name}|{proposal.attempt}|{earlier}"
    return ActionTransition(
        old_state="",
        new_state=FIRST_STATE[mode],
        reason=proposal.reason,
        actor=LEADER,
        at=now,
        action=mint("action", key),
        key=key,
        kind=proposal.kind.name,
        mode=mode,
        term=term,
        incident=incident.incident,
        run=incident.run,
        attempt=proposal.attempt,
        new_attempt=proposal.new_attempt,
        launch=proposal.launch,
        node=node,
        grace=0.0,  # the attempt has failed or hangs: there is nothing that its ranks could still bring to an end
        deadline=_deadline(proposal.kind, now) if mode is ActionMode.AUTO else None,
    )


def asked_stop(
    kind: ActionKind, run: RunLook, intent: str, *, actor: str, reason: str, term: int, grace: float, now: datetime
) -> ActionTransition:
    """The stop of a run that a person asked for: the asking is the approval."""
    key = f"{kind.name}|{run.run}|{intent}"
    return ActionTransition(
        old_state="",
        new_state="issued",
        reason=reason or "asked for",
        actor=actor,
        at=now,
        action=mint("action", key),
        key=key,
        kind=kind.name,
        mode=ActionMode.APPROVE,
        term=term,
        run=run.run,
        attempt=run.current.attempt if run.current else "",
        node=run.node,
        grace=grace,
        deadline=_deadline(kind, now),
    )


def approve(waiting: ActionTransition, actor: str, reason: str, term: int, now: datetime) -> ActionTransition:
    """A waiting action, issued because `actor` said so."""
    return _issued(waiting, reason or "approved", actor, term, now)


def renew(issued: ActionTransition, term: int, now: datetime) -> ActionTransition:
    """An issued action of an earlier leader, under this one's term: launchers refuse an older term."""
    return follow(issued, "issued", "a new leader stands by it", now, term=term)


def stale(action: ActionTransition, incident: IncidentTransition | None, run: RunLook | None) -> str | None:
    """Why the reasons for an action no longer hold; None while they do. Read again before each step that cannot be taken back."""
    if run is None or run.state != "started":
        return "the run is over"
    if action.attempt and (run.current is None or run.current.attempt != action.attempt):
        return f"{action.attempt} is no longer the current attempt"
    if action.incident and (incident is None or incident.new_state == State.RESOLVED):
        return "the incident is resolved"
    return None


def withdraw(action: ActionTransition, reason: str, now: datetime) -> ActionTransition | None:
    """An action under way, now that nothing may be done: taken back, or where a launcher has it already, said once that it goes on."""
    if action.new_state == "issued":
        return follow(action, "cancelled", f"withdrawn: {reason}", now, actor=WITHDRAWN_BY)
    if action.new_state == "accepted" and action.actor != WITHDRAWN_BY:
        return follow(action, "accepted", f"goes on, since the launcher had taken it up: {reason}", now, actor=WITHDRAWN_BY)
    return None


def withdrawn(action: ActionTransition) -> bool:
    """Whether an action was taken back, so that it may be proposed again."""
    return action.new_state == "cancelled" and action.actor == WITHDRAWN_BY


def expire(action: ActionTransition, now: datetime) -> ActionTransition | None:
    """The end of an action that nobody took up, or that was taken up and never done, in time."""
    if action.new_state == "issued" and action.deadline and now > action.deadline:
        return follow(action, "expired", "no launcher took it up before its deadline", now)
    if action.new_state == "accepted" and now > _deadline(BY_NAME[action.kind], action.at):
        return follow(action, "failed", f"accepted, and not done within {BY_NAME[action.kind].deadline:g} s", now)
    return None


def settled_by_rows(action: ActionTransition, run: RunLook | None, now: datetime) -> ActionTransition | None:
    """The end of an action as rows show it, also where the launcher's answer got lost: its effect is seen, or never will be."""
    if run is None or action.new_state not in UNDER_WAY:
        return None
    if action.kind == RESTART_RUN.name:
        new = run.attempt(action.new_attempt)
        if new and new.state != "issued":
            return follow(action, "succeeded", f"attempt {new.attempt} was started", now)
        return follow(action, "failed", f"the run is {run.state}", now) if run.state != "started" else None
    return follow(action, "succeeded", f"the run is {run.state}", now) if run.state != "started" else None


def _issued(action: ActionTransition, reason: str, actor: str, term: int, now: datetime, **changes: Any) -> ActionTransition:
    return follow(action, "issued", reason, now, actor=actor, term=term, deadline=_deadline(BY_NAME[action.kind], now), **changes)


def _deadline(kind: ActionKind, now: datetime) -> datetime:
    return now + timedelta(seconds=kind.deadline)
