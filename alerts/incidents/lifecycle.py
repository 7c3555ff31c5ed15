"""The life of an incident: open → mitigating → recovering → resolved. Acknowledging is beside it: it moves nothing.

An incident resolves at recovery. `caught_up_at` becomes known later and is filled in by a further
resolved → resolved transition, the only thing that may still happen then, besides an acknowledgement.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from alerts.transitions import LEADER, follow
from pipeline.records import IncidentTransition


class State(StrEnum):
    """Where an incident stands."""

    NEW = ""
    OPEN = "open"
    MITIGATING = "mitigating"  # an action is with the launcher
    RECOVERING = "recovering"  # the next attempt has been started
    RESOLVED = "resolved"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.NEW: frozenset({State.OPEN}),
    State.OPEN: frozenset({State.OPEN, State.MITIGATING, State.RECOVERING, State.RESOLVED}),
    State.MITIGATING: frozenset({State.MITIGATING, State.OPEN, State.RECOVERING, State.RESOLVED}),
    State.RECOVERING: frozenset({State.RECOVERING, State.OPEN, State.RESOLVED}),
    State.RESOLVED: frozenset({State.RESOLVED}),
}
ONCE = ("onset", "detected_at", "located_at", "acted_at", "recovered_at", "caught_up_at", "resolved_at", "acknowledged_by")
"""What is set once and then stands; only an acknowledgement is taken back, where the incident turns out to be about something worse."""
FIXED = ("incident", "run", "attempt")
AFTER_RESOLVED = frozenset({"recovered_at", "caught_up_at", "acknowledged_by"})


class IllegalTransition(ValueError):
    """The incident cannot go there; this is a mistake in the caller."""


def open_incident(first: IncidentTransition) -> IncidentTransition:
    """`first`, checked: an incident begins open, from nothing, with a time of detection.

    Raises IllegalTransition.
    """
    if (first.old_state, first.new_state) != (State.NEW, State.OPEN) or first.detected_at is None or not first.incident:
        raise IllegalTransition(f"an incident begins open and detected, not {first.old_state!r} -> {first.new_state!r}")
    return first


def move(
    last: IncidentTransition, new_state: State, reason: str, now: datetime, *, actor: str = LEADER, **changes: Any
) -> IncidentTransition:
    """The transition after `last`, with `changes` to its fields.

    Raises IllegalTransition for a move that the table does not hold, or a change of what is fixed or set once.
    """
    if new_state not in TRANSITIONS[State(last.new_state)]:
        raise IllegalTransition(f"incident {last.incident}: {last.new_state} -> {new_state}")
    for name, value in changes.items():
        before = getattr(last, name)
        if value == before:
            continue
        forgotten = name == "acknowledged_by" and value == "" and "fault" in changes
        if name in FIXED or (name in ONCE and before and not forgotten):
            raise IllegalTransition(f"incident {last.incident}: {name} stands at {before} and cannot become {value}")
        if last.new_state == State.RESOLVED and name not in AFTER_RESOLVED:
            raise IllegalTransition(f"incident {last.incident} is resolved: {name} cannot change any more")
    if new_state == State.RESOLVED and last.resolved_at is None and changes.get("resolved_at") is None:
        raise IllegalTransition(f"incident {last.incident}: resolved needs its time")
    return follow(last, new_state, reason, now, actor=actor, **changes)
