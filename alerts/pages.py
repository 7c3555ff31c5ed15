"""What a person is told about an incident: pure, from its rows. No measured value is in the dedup key.

The summary answers an engineer's first questions in the order in which they are asked, since a phone shows its
beginning: what and where, since when and at what price, what Surefoot does, what is at risk.
"""

from collections.abc import Sequence
from datetime import datetime

from alerts.incidents.lifecycle import State
from alerts.page_facts import Facts, at_risk, idle, idle_seconds, stops_work
from alerts.receivers.page import ACKNOWLEDGE, RESOLVE, TRIGGER, Page, PageEvent
from alerts.recovery.envelope import REFUSED
from alerts.recovery.policy import restarted_where
from alerts.words import clock, duration, gpu_time, gpus, percent, sentence
from pipeline.catalog import runbooks
from pipeline.catalog.actions import BY_NAME as ACTIONS
from pipeline.catalog.actions import END_RUN, RESTART_RUN, STOP_RUN
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.faults import RESTART_LOOP
from pipeline.catalog.rules import acts
from pipeline.hostlist import fold
from pipeline.loss import loss_sentence
from pipeline.records import ActionTransition, IncidentTransition
from pipeline.wording import listed

MAIN, STOPPED = "", ":stopped"
"""The alerts that an incident may have, as endings of its dedup key."""

_DOING = {  # what an action is to do, and what it has done
    RESTART_RUN.name: tuple(f"{verb} the run {{where}} from its last complete checkpoint" for verb in ("restart", "restarted")),
    END_RUN.name: ("let the run end", "let the run end"),
    STOP_RUN.name: ("stop the run", "stopped the run"),
}


def page(incident: IncidentTransition, event: PageEvent, facts: Facts, now: datetime, alert: str = MAIN) -> Page:
    """The page that tells `event` of an incident's `alert`."""
    link = facts.console.link
    runbook = runbooks.link(incident.fault, facts.console.runbooks, link)
    return Page(
        dedup_key=incident.incident + alert,
        event=event,
        severity=incident.severity,
        summary=_summary(incident, event, facts, now),
        source=incident.node or incident.run or incident.device,
        component=incident.device or (f"rank {incident.rank}" if incident.rank is not None else ""),
        group=incident.run,
        cls=incident.fault,
        at=now,
        links=(
            ("Incident", f"{link}/incident?incident={incident.merged_into or incident.incident}"),
            *((("Run", f"{link}/run?run={incident.run}"),) if incident.run else ()),
            *((("Runbook", runbook),) if runbook.startswith(("http://", "https://")) else ()),
        ),
        details=_details(incident, facts, runbook, now),
    )


def alerts_due(incident: IncidentTransition, told: bool) -> tuple[str, ...]:
    """The alerts that an incident has for somebody; `told` says whether they got the trigger of the main one.

    What Surefoot has stopped restarting is an alert of its own: who was told that it restarts the run must be woken again.
    """
    if incident.fault != RESTART_LOOP.name:
        return (MAIN,)
    return (MAIN, STOPPED) if told else (STOPPED,)


def events_due(incident: IncidentTransition) -> tuple[PageEvent, ...]:
    """The events that somebody who was told of the incident should have got by now, in order."""
    due: tuple[PageEvent, ...] = (TRIGGER,)
    if incident.acknowledged_by:
        due += (ACKNOWLEDGE,)
    return (*due, RESOLVE) if incident.new_state == State.RESOLVED else due


def notification_id(incident: str, event: PageEvent, receiver: str, alert: str = MAIN) -> str:
    """The id of a notification: one a receiver, alert and event."""
    return f"{incident}{alert}:{event}:{receiver}"


# --- the summary -----------------------------------------------------------------------------


def _summary(incident: IncidentTransition, event: PageEvent, facts: Facts, now: datetime) -> str:
    what = _what(incident, facts)
    done = f"Surefoot: {doing(incident, facts, now)}"
    if event == TRIGGER:
        told = [what, _price(incident, facts, now), _hit(facts), done, _risk(incident, facts, now)]
    elif event == ACKNOWLEDGE:
        told = [f"acknowledged by {incident.acknowledged_by}: {what}", _price(incident, facts, now), done]
    elif incident.merged_into:
        told = [f"not over, but part of a larger incident now: {what}", incident.reason, "its own alert goes on"]
    else:
        lasted = duration(_seconds(incident.onset or incident.detected_at, incident.resolved_at or now))
        told = [f"resolved after {lasted}: {what}", incident.reason, done if facts.actions else "", _cost(incident, facts, now)]
    return " ".join(map(sentence, filter(None, told)))


def _what(incident: IncidentTransition, facts: Facts) -> str:
    if incident.fault != RESTART_LOOP.name:
        return incident.title if incident.confidence >= 1 else f"{incident.title} ({percent(incident.confidence)} sure)"
    why = next((f.reason for f in facts.findings if f.fault == RESTART_LOOP.name), "the same failure again and again")
    return f"stopped: {why}; run {incident.run} is not restarted any more"


def _price(incident: IncidentTransition, facts: Facts, now: datetime) -> str:
    began = incident.onset or incident.detected_at or incident.at
    since = f"since {clock(began, now)} ({duration(_seconds(began, now))})"
    if incident.resolved_at:
        since = f"from {clock(began, now)} to {clock(incident.resolved_at, now)} ({duration(_seconds(began, incident.resolved_at))})"
    if not incident.run:
        return since
    waiting = idle(incident, facts)
    if waiting is None:
        return f"{since}: all GPUs of the run are idle, how many is not known yet"
    if not stops_work(incident):
        return f"{since}: the run may well go on, no GPU is known to be idle"
    lost = _lost(incident, facts, now)
    if incident.resolved_at:
        return since + (f": {gpu_time(lost)} lost" if lost is not None else "")
    return f"{since}: {gpus(waiting)} idle now" + (f", {gpu_time(lost)} lost so far" if lost is not None else "")


def _hit(facts: Facts) -> str:
    """Who is hit by a fault of nodes."""
    return f"runs there: {listed(facts.runs, _NAMED)}" if facts.runs else ""


_NAMED = 3  # runs that a summary names


def _risk(incident: IncidentTransition, facts: Facts, now: datetime) -> str:
    if not incident.run or incident.recovered_at or incident.resolved_at:
        return ""
    work = at_risk(incident, facts, now)
    risk = f"{gpu_time(work)} of work at risk" if work is not None else "the work since then is at risk"
    if facts.checkpoint_at is None:
        return f"no complete checkpoint yet: {risk if work is not None else 'all work of the run is at risk'}"
    step = f" (step {facts.checkpoint_step})" if facts.checkpoint_step else ""
    return f"last complete checkpoint {duration(_seconds(facts.checkpoint_at, now))} ago{step}: {risk}"


def _lost(incident: IncidentTransition, facts: Facts, now: datetime) -> float | None:
    """GPU-seconds: what the ledger has, or the time waited by the clock where that is more, since the ledger follows later."""
    waited = idle_seconds(incident, facts, now)
    ledger = sum(facts.spent.values())
    return None if waited is None and not ledger else max(ledger, waited or 0.0)


def _cost(incident: IncidentTransition, facts: Facts, now: datetime) -> str:
    ledger = sum(facts.spent.values())
    lost = _lost(incident, facts, now)
    if ledger and lost == ledger:
        return loss_sentence({c: round(s * 1e6) for c, s in facts.spent.items()})
    if not lost:
        return "" if lost is None else "no GPU time was lost"
    return f"{gpu_time(lost)} lost waiting, and the work since the checkpoint that it went back to"


# --- what is done ----------------------------------------------------------------------------


def doing(incident: IncidentTransition, facts: Facts, now: datetime) -> str:
    """What Surefoot has done, does or will do about an incident, and when; or for whom it waits, and what to press."""
    newest = max(facts.actions, key=lambda a: a.at, default=None)
    refused = incident.reason.startswith(REFUSED) and (newest is None or incident.at >= newest.at)
    said = _of_action(newest, incident, now) if newest and not refused else _of_none(incident, facts)
    if not facts.paused:
        return said
    why = "" if facts.paused in said else f"; no further action: {facts.paused}"
    return f"{said}{why} (to go on: surefoot actions resume)"


def _of_action(action: ActionTransition, incident: IncidentTransition, now: datetime) -> str:
    help_text = ACTIONS[action.kind].help[:1].lower() + ACTIONS[action.kind].help[1:] if action.kind in ACTIONS else action.kind
    told = _DOING.get(action.kind, (help_text, f"did what it had to: {help_text}"))
    what, did = (text.replace("{where}", restarted_where(incident.fault, incident.node)) for text in told)
    at = clock(action.at, now)
    match action.new_state:
        case "proposed" | "waiting":
            why = f" ({action.reason})" if action.old_state == action.new_state else ""
            return f"waits for you: press Approve on the incident's page to {what}{why}. Nothing is done until then"
        case "issued":
            by = f", to be taken up by {clock(action.deadline, now)}" if action.deadline else ""
            return f"ordered at {at} to {what}{by}"
        case "accepted":
            return f"is about to {what}; the launcher took it up at {at}"
        case "succeeded":
            return f"{did}, done at {at}"
        case "dry_run":
            return f"dry run, nothing is done; it would {what}"
        case state:
            return f"was to {what}, but that {_ENDED.get(state, state)} at {at}: {action.reason}"


_ENDED = {"failed": "failed", "expired": "expired", "cancelled": "was cancelled"}


def _of_none(incident: IncidentTransition, facts: Facts) -> str:
    if incident.reason.startswith(REFUSED):
        return f"does nothing: {incident.reason.removeprefix(REFUSED)}"
    if facts.paused:
        return f"does nothing: {facts.paused}"
    if not incident.run or not acts(incident.fault, incident.attempt):
        return "does nothing about this by itself; somebody has to look"
    return "has done nothing yet"


# --- the details -----------------------------------------------------------------------------


def _details(incident: IncidentTransition, facts: Facts, runbook: str, now: datetime) -> dict[str, str]:
    """The same and more, one fact a line, the most important first: what does not fit is cut from the end."""
    told = {
        "what": _what(incident, facts),
        "where": _where(incident, facts),
        "since": _price(incident, facts, now),
        "surefoot": doing(incident, facts, now),
        "checkpoint": _risk(incident, facts, now),
        "confidence": percent(incident.confidence),
        "runbook": runbook,
        "acknowledged": incident.acknowledged_by,
        "run": incident.run,
        "runs there": ", ".join(facts.runs),
        "advice": FAULTS[incident.fault].advice if incident.fault in FAULTS else "",
        "attempt": " then ".join(filter(None, (incident.attempt, incident.next_attempt))),
        "layer": incident.layer,
        "state": f"{incident.new_state}: {incident.reason}",
        "found": _joined(_found(facts)),
        "done": _joined([f"{a.kind} {a.new_state} ({a.reason})" for a in facts.actions]),
    }
    return {k: v for k, v in (told | _times(incident)).items() if v}


def _where(incident: IncidentTransition, facts: Facts) -> str:
    rank = "" if incident.rank is None else f"rank {incident.rank}"
    nodes = [incident.node] if incident.node and (rank or len(facts.nodes) < 2) else facts.nodes
    said = f"node{'' if len(nodes) == 1 else 's'} {_listed(nodes)}" if nodes else ""
    return ", ".join(filter(None, (said, rank, incident.device))) or "not located yet"


def _listed(nodes: Sequence[str]) -> str:
    """`gpu-[001-050]`, as schedulers take it; of names without order the first ones."""
    folded = fold(nodes)
    return folded if len(folded) <= _LONGEST else listed(nodes, _FIRST)


_LONGEST, _FIRST = 300, 10  # characters of a list of nodes; nodes that are named where it is longer


def _found(facts: Facts) -> list[str]:
    if len(facts.nodes) < 2:
        return [f"{f.detector}: {f.reason}" for f in facts.findings]
    return [f"{f.node}: {f.reason}" for f in sorted(facts.findings, key=lambda f: (f.node, f.device))]


def _times(incident: IncidentTransition) -> dict[str, str]:
    names = ("onset", "detected", "located", "acted", "recovered", "resolved")
    times = (getattr(incident, name if name == "onset" else f"{name}_at") for name in names)
    return {name: at.isoformat(timespec="milliseconds") for name, at in zip(names, times, strict=True) if at}


_MOST = 20  # findings or actions that are told one by one


def _joined(told: Sequence[str]) -> str:
    more = f"; and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return "; ".join(told[:_MOST]) + more


def _seconds(since: datetime | None, now: datetime) -> float:
    return (now - since).total_seconds() if since else 0.0
