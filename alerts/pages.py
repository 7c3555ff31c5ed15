"""What a person is told about an incident: pure, from its rows. No measured value is in the dedup key."""

from collections.abc import Sequence
from datetime import datetime

from alerts.incidents.lifecycle import State
from alerts.receivers.page import ACKNOWLEDGE, RESOLVE, TRIGGER, Page, PageEvent
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition


def page(
    incident: IncidentTransition,
    event: PageEvent,
    findings: Sequence[FindingTransition],
    actions: Sequence[ActionTransition],
    link: str,
    now: datetime,
) -> Page:
    """The page that tells `event` of `incident`; `link` is the console's base address."""
    return Page(
        dedup_key=incident.incident,
        event=event,
        severity=incident.severity,
        summary=_summary(incident, event),
        source=incident.node or incident.run,
        component=f"rank {incident.rank}" if incident.rank is not None else "",
        group=incident.run,
        cls=incident.fault,
        at=now,
        links=(
            ("Incident", f"{link}/incident?incident={incident.incident}"),
            *((("Run", f"{link}/run?run={incident.run}"),) if incident.run else ()),
        ),
        details=_details(incident, findings, actions),
    )


def events_due(incident: IncidentTransition) -> tuple[PageEvent, ...]:
    """The events that somebody who was told of the incident should have got by now, in order."""
    due: tuple[PageEvent, ...] = (TRIGGER,)
    if incident.acknowledged_by:
        due += (ACKNOWLEDGE,)
    return (*due, RESOLVE) if incident.new_state == State.RESOLVED else due


def notification_id(incident: str, event: PageEvent, receiver: str) -> str:
    """The id of a notification: one a receiver, incident and event."""
    return f"{incident}:{event}:{receiver}"


def _summary(incident: IncidentTransition, event: PageEvent) -> str:
    if event == RESOLVE:
        return f"Resolved: {incident.title}"
    return f"Acknowledged by {incident.acknowledged_by}: {incident.title}" if event == ACKNOWLEDGE else incident.title


def _details(incident: IncidentTransition, findings: Sequence[FindingTransition], actions: Sequence[ActionTransition]) -> dict[str, str]:
    found = "; ".join(f"{f.detector}: {f.reason}" for f in findings)
    done = "; ".join(f"{a.kind} {a.new_state} ({a.reason})" for a in actions)
    times = {
        name: at.isoformat(timespec="milliseconds")
        for name, at in (
            ("onset", incident.onset),
            ("detected", incident.detected_at),
            ("located", incident.located_at),
            ("acted", incident.acted_at),
            ("recovered", incident.recovered_at),
            ("resolved", incident.resolved_at),
        )
        if at
    }
    where = {
        "run": incident.run,
        "attempt": incident.attempt,
        "node": incident.node,
        "rank": "" if incident.rank is None else str(incident.rank),
        "layer": incident.layer,
        "confidence": f"{incident.confidence:.0%}",
    }
    told = {**where, "found": found, "done": done or "nothing yet", "state": f"{incident.new_state}: {incident.reason}", **times}
    return {k: v for k, v in told.items() if v}
