"""What happened in an incident, in order: built from its rows alone, drawn by `moments`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from dashboard import palette, words
from dashboard.markup import Html, div, el
from dashboard.parts import tone
from pipeline.catalog import actions, faults
from pipeline.records import ActionTransition, Event, FindingTransition, IncidentTransition, NotificationTransition, Request


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened at `at`. A moment without a colour is a side note."""

    at: datetime
    title: str
    detail: str = ""
    colour: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def placed(i: IncidentTransition, findings: Iterable[FindingTransition]) -> IncidentTransition:
    """The incident with the place that one of its findings names, where it was not located itself."""
    named = next((f for f in findings if f.new_state == "open" and f.rank is not None), None)
    if i.located_at or named is None:
        return i
    return replace(i, node=named.node, rank=named.rank, device=named.device, located_at=named.at)


def of_onset(i: IncidentTransition) -> list[Moment]:
    """When the fault began, where that is known."""
    return [Moment(i.onset, "Fault began", "as far as the evidence shows", palette.UNKNOWN_COLOUR)] if i.onset else []


def of_incident(history: Sequence[IncidentTransition], last: IncidentTransition) -> list[Moment]:
    """The milestones that `last` holds, its last transition as `placed`, and what people and the leader did on the way."""
    resolution = next((t.reason for t in reversed(history) if t.new_state == "resolved" and t.old_state != "resolved"), "")
    milestones = (
        (
            last.located_at,
            f"Located: {words.where(last.node, last.rank, last.device)}",
            f"layer {last.layer}" if history[-1].located_at else "by a later finding",
            palette.GROUPS[palette.INCIDENT],
        ),
        (
            last.recovered_at,
            "Recovered",
            f"first step completed by {last.next_attempt or 'the next attempt'}",
            palette.state("resolved").colour,
        ),
        (last.caught_up_at, "Caught up", "back at the step before the failure", palette.state("resolved").colour),
        (last.resolved_at, "Resolved", resolution, palette.state("resolved").colour),
    )
    found = [Moment(at, title, detail, colour) for at, title, detail, colour in milestones if at]
    for before, after in zip((None, *history), history, strict=False):
        if after.acknowledged_by and not (before and before.acknowledged_by):
            found.append(Moment(after.at, f"Acknowledged by {after.acknowledged_by}", colour=palette.state("started").colour))
        elif before and after.new_state != before.new_state and after.new_state != "resolved":
            found.append(Moment(after.at, f"Incident is {after.new_state}", after.reason))
        elif before and after.reason != before.reason and after.new_state != "resolved":
            found.append(Moment(after.at, "Leader's note", after.reason))
    return found


def of_findings(findings: Iterable[FindingTransition]) -> list[Moment]:
    """When each detector judged, why, and on which evidence; what many places told in one second is told once."""
    together: dict[tuple[str, str, str, int], list[FindingTransition]] = {}
    for f in findings:
        together.setdefault((f.detector, f.fault, f.new_state, int(f.at.timestamp())), []).append(f)
    return [moment for some in together.values() for moment in ([_of_many(some)] if len(some) > _FEW else map(_of_one, some))]


_FEW = 3  # findings of one second that are told one by one
_TOLD = 20  # of more than those, that are named


def _of_one(f: FindingTransition) -> Moment:
    if f.new_state != "open":
        return Moment(f.at, f"{f.detector} is {f.new_state}", f.reason)
    return Moment(f.at, f"Detected by {f.detector}: {_summary(f)}", f.reason, palette.severity(f.severity).colour, evidence(f.evidence))


def _of_many(some: Sequence[FindingTransition]) -> Moment:
    first = some[0]
    facts = {words.where(f.node, f.rank, f.device): f.reason for f in some[:_TOLD]}
    more = {"and": f"{len(some) - _TOLD} more"} if len(some) > _TOLD else {}
    if first.new_state != "open":
        return Moment(first.at, f"{first.detector} is {first.new_state} at {len(some)} places", first.reason, facts=facts | more)
    title = f"Detected by {first.detector} at {len(some)} places: {_summary(first)}"
    return Moment(first.at, title, f"the first: {first.reason}", palette.severity(first.severity).colour, facts | more)


def _summary(f: FindingTransition) -> str:
    return faults.BY_NAME[f.fault].summary if f.fault in faults.BY_NAME else f.fault


def of_actions(history: Iterable[ActionTransition]) -> list[Moment]:
    """Each change of state of each action."""
    found = []
    for a in history:
        name = action_name(a.kind)
        colour = palette.state(a.new_state).colour if a.new_state in ("issued", "succeeded", "failed", "waiting") else ""
        found.append(Moment(a.at, f"{name}: {_SAID.get(a.new_state, a.new_state)}", a.reason, colour))
    return found


_SAID = {
    "waiting": "waits for approval",
    "issued": "sent to the launchers",
    "accepted": "accepted by the launcher",
    "dry_run": "dry run, nothing done",
}


def of_pages(history: Iterable[NotificationTransition]) -> list[Moment]:
    """What was sent to whom. A notification that is only queued is no news."""
    said = {"sent": "sent to", "failed": "could not be sent to", "held": "held back"}
    return [
        Moment(
            n.at,
            f"{n.event.capitalize()} {said[n.new_state]} {n.receiver}".rstrip(),
            n.reason,
            palette.state("failed").colour if n.new_state == "failed" else "",
        )
        for n in history
        if n.new_state in said
    ]


def of_captures(events: Sequence[Event]) -> list[Moment]:
    """The evidence taken, one moment for each kind."""
    first: dict[str, list[Event]] = {}
    for e in events:
        first.setdefault(e.code, []).append(e)
    return [
        Moment(min(e.at for e in es), f"Captured {words.evidence(kind, len(es))} of {words.plural(len(es), 'rank')}")
        for kind, es in first.items()
    ]


def of_requests(requests: Iterable[Request]) -> list[Moment]:
    """What people asked for."""
    return [Moment(r.at, f"{r.actor} asked to {r.kind}", r.reason) for r in requests]


def action_name(kind: str) -> str:
    """`Restart run` for `restart_run`."""
    return words.category(kind).capitalize()


def action_help(kind: str) -> str:
    """What an action of this kind does, in the catalogue's words."""
    return actions.BY_NAME[kind].help if kind in actions.BY_NAME else ""


def evidence(text: str) -> dict[str, str]:
    """The evidence of a finding as names and values to print; text that is no JSON object is shown as it is."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        return {"evidence": text}
    if not isinstance(given, dict):
        return {"evidence": text}
    return {words.category(str(k)): v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in given.items()}


def moments(given: Iterable[Moment], start: datetime) -> Html:
    """The timeline, oldest first, with how long after `start` each moment came; what came at the same time stays in the given order."""
    ordered = sorted(given, key=lambda m: m.at)
    return div("sf-timeline", *(_moment(m, start) for m in ordered))


def _moment(m: Moment, start: datetime) -> Html:
    at = m.at.astimezone(UTC)
    clock = div("sf-moment-time", f"{at:%H:%M:%S}.{at.microsecond // 100_000}", el("small", words.offset(m.at, start)))
    facts = [part for name, value in m.facts.items() for part in (el("dt", name), el("dd", value))]
    what = div(
        "sf-moment-what",
        div("sf-moment-title", m.title),
        div("sf-quiet sf-small", m.detail) if m.detail else None,
        el("details", el("summary", "evidence"), el("dl", *facts, cls="sf-facts"), cls="sf-more") if facts else None,
    )
    rail = div("sf-rail", el("i"))
    return div("sf-moment" if m.colour else "sf-moment sf-minor", clock, rail, what, style=tone(m.colour) if m.colour else "")


def miles(i: IncidentTransition, *, given_up: bool) -> Html:
    """How far the incident has come: each milestone with its time from the onset. `given_up`: the run ended before it recovered."""
    start = i.onset or i.detected_at or i.at
    steps = (
        ("detected", i.detected_at),
        ("located", i.located_at),
        ("acted", i.acted_at),
        ("recovered", i.recovered_at),
        ("resolved", i.resolved_at),
        ("caught up", i.caught_up_at),
    )
    return div("sf-miles", *(_mile(name, at, start, "not yet" if name == "resolved" else _absent(i, name, given_up)) for name, at in steps))


def _absent(i: IncidentTransition, name: str, given_up: bool) -> str:
    """Why a milestone bears no time. Who restarts a run that tells no steps never hears how far it came."""
    if given_up or i.new_state != "resolved":
        return "not reached" if given_up else "not yet"
    return "not known" if i.next_attempt and name in ("recovered", "caught up") else "not needed"


def _mile(name: str, at: datetime | None, start: datetime, absent: str) -> Html:
    value = words.offset(at, start) if at else absent
    return div("sf-mile" if at else "sf-mile sf-open", el("b", value), el("small", name))
