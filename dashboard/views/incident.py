"""Incident: what happened, where, why we think so, what is done about it and what it cost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import streamlit as st

from dashboard import ask, palette, parts, runs, timeline, words
from dashboard.markup import Html, div, el, join, link, show, span
from dashboard.read import REFRESH, Sheet, settings
from dashboard.views import changes
from pipeline.catalog import faults, runbooks
from pipeline.catalog.rules import acts
from pipeline.queries.captures import captures
from pipeline.queries.incident_actions import incident_actions
from pipeline.queries.incident_cost import Spent, incident_cost
from pipeline.queries.incident_findings import incident_findings
from pipeline.queries.incident_history import incident_history
from pipeline.queries.incident_pages import incident_pages
from pipeline.queries.incident_states import incident_states
from pipeline.queries.requests_about import requests_about
from pipeline.queries.run_spending import run_spending
from pipeline.queries.run_states import RunState
from pipeline.records import ActionTransition, Event, FindingTransition, IncidentTransition, Request

_TO_DECIDE = ("proposed", "waiting")


def page() -> None:
    """Draw the incident that the address names, or the list of incidents."""
    incident = st.query_params.get("incident", "")
    if not incident:
        parts.tab("Incidents")
        _list()
        return
    history = Sheet().rows(incident_history, incident)
    parts.tab(history[-1].title if history else "Incident")
    _incident(incident)


@st.fragment(run_every=REFRESH)
def _list() -> None:
    sheet = Sheet()
    incidents = sheet.rows(incident_states, 100)
    parts.trouble(sheet)
    still = [i for i in incidents if i.new_state != "resolved"]
    over = [i for i in incidents if i.new_state == "resolved"]
    if sheet.blank:
        return
    if not incidents:
        show(
            parts.empty(
                "No incident yet.", "Good. To see what one looks like, let the drill kill a rank of a real training:", "surefoot drill kill"
            )
        )
        return
    for text, note, some in (("Open incidents", "worst first", still), ("Resolved", "newest first", over)):
        if some:
            show(parts.title(text, note), parts.gap(), div("sf-cards", *(parts.incident_card(i, sheet) for i in some)))
    show(parts.foot(sheet))


@st.fragment(run_every=REFRESH)
def _incident(incident: str) -> None:
    sheet = Sheet()
    history = sheet.rows(incident_history, incident)
    if not history:
        parts.trouble(sheet)
        if not sheet.blank:
            show(parts.missing("incident", incident))
        return
    findings = sheet.rows(incident_findings, incident)
    last = timeline.placed(history[-1], findings)
    run = runs.find(sheet, last.run) if last.run else None
    actions = sheet.rows(incident_actions, incident)
    pages = sheet.rows(incident_pages, incident)
    taken = sheet.rows(captures, last.run, last.attempt) if last.run else []
    asked = sheet.rows(requests_about, sorted({incident, *(a.action for a in actions)}))
    cost = sheet.rows(incident_cost, incident)
    parts.trouble(sheet)
    _head(sheet, last, history[0].at, asked, closes=run is not None and run.state == "failed")
    show(timeline.miles(last, given_up=_given_up(last, run)))
    changes.of_incident(sheet, last)
    with st.container(key="incident_columns"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        start = last.onset or last.detected_at or history[0].at
        told = [
            *timeline.of_onset(last),
            *timeline.of_findings(findings),
            *timeline.of_incident(history, last),
            *timeline.of_actions(actions),
        ]
        told += [*timeline.of_pages(pages), *timeline.of_captures(taken), *timeline.of_requests(asked)]
        show(parts.title("Timeline", "UTC, and since the fault began"), parts.gap(), timeline.moments(told, start))
        _captures(taken)
    with right:
        _actions(sheet, actions, asked, _nothing_done(last, run))
        _why(findings)
        _cost(sheet, cost, last)
        show(parts.foot(sheet))


def _given_up(i: IncidentTransition, run: RunState | None) -> bool:
    """Whether the run ended, and not in good order, while the incident went on: it recovers no more."""
    return run is not None and run.state in ("failed", "stopped") and (i.resolved_at is None or i.resolved_at >= run.changed_at)


def _nothing_done(i: IncidentTransition, run: RunState | None) -> str:
    """What to say of an incident without an action."""
    if i.new_state == "resolved":
        return "Nothing was done about it."
    if runs.is_over(run):
        return "The run is over: nothing is done about it any more."
    if not acts(i.fault, i.attempt):
        return "Surefoot has no action for this fault: somebody has to look."
    return "Nothing is done about it yet. Where an action is due, it appears here within a second."


def _head(sheet: Sheet, i: IncidentTransition, opened_at: datetime, asked: Sequence[Request], *, closes: bool) -> None:
    mark = palette.severity(i.severity)
    badges = div(
        "sf-head-line",
        parts.badge(i.severity, mark),
        parts.incident_state(i.new_state),
        span("sf-chip", i.fault),
        span("sf-chip", f"layer {i.layer}"),
        span("sf-chip", parts.where(i.node, i.rank, i.device)),
    )
    began = i.onset or i.detected_at or i.at
    lines: list[str | None] = [f"began {words.when(began, sheet.now)}"]
    if i.resolved_at:
        lines.append(f" · resolved {words.when(i.resolved_at, sheet.now)}")
    if i.run:
        lines += [" · run ", link("run", i.run, run=i.run)]
    if i.attempt:
        lines.append(f" · attempt {i.attempt}")
    if i.next_attempt:
        lines.append(f", then {i.next_attempt}")
    if i.merged_into:
        lines += [" · part of a ", link("incident", "larger incident", incident=i.merged_into)]
    lines += [" · ", el("a", "runbook", href=runbooks.link(i.fault, settings().console.runbooks, "."))]
    show(div("sf-head", badges, el("h1", i.title), div("sf-quiet", join(*lines))))
    if i.acknowledged_by:
        show(div("sf-quiet", f"✓ Acknowledged by {i.acknowledged_by}."))
    elif i.new_state != "resolved":
        given = ask.prepare(ask.ACKNOWLEDGE, i.incident, opened_at, asked, sheet.now)
        label, meaning = _CLOSE if closes else _LOOK
        _choice([(given, label, meaning, "secondary")], sheet)
        if closes:
            show(div("sf-quiet sf-small", f"The run failed and is over, so nothing is left to recover. {meaning}."))


_LOOK = ("Acknowledge", "I am on it: tells the others that somebody looks")
_CLOSE = ("Acknowledge and close", "Acknowledging says that somebody knows, and resolves the incident")


Look = Literal["primary", "secondary"]


def _choice(offered: Sequence[tuple[ask.Ask, str, str, Look]], sheet: Sheet) -> None:
    """Buttons (what is asked, label, meaning, look) of which one is pressed, or what has become of pressing one."""
    asked = next((given for given, *_ in offered if given.asked_at), None)
    if asked:
        show(div("sf-quiet", f"↻ Asked to {asked.kind} at {words.clock(asked.asked_at, sheet.now)}, waiting for the leader."))
    else:
        with st.container(horizontal=True):
            clicks = [
                st.button(label, key=f"{given.kind}-{given.intent}", help=meaning, type=look) for given, label, meaning, look in offered
            ]
        pressed = next((given for (given, *_), click in zip(offered, clicks, strict=True) if click), None)
        if pressed and ask.press(pressed).asked_at:
            st.rerun()  # drawing into a placeholder instead would empty it at each refresh, and the buttons could be gone under a click
    for problem in filter(None, (ask.trouble(given) for given, *_ in offered)):
        show(div("sf-banner", f"It could not be asked: {problem}. Press again; it is asked once."))


def _actions(sheet: Sheet, history: Sequence[ActionTransition], asked: Sequence[Request], nothing: str) -> None:
    show(parts.title("Actions"))
    if not history:
        show(div("sf-box sf-quiet", nothing))
    first = {t.action: t for t in reversed(history)}
    for a in reversed(list({t.action: t for t in history}.values())):
        with st.container(key=f"action_{a.action}"):
            _action(sheet, a, first[a.action], asked)


def _action(sheet: Sheet, a: ActionTransition, first: ActionTransition, asked: Sequence[Request]) -> None:
    facts = [f"mode {a.mode}"] + ([f"on attempt {a.attempt}"] if a.attempt else []) + ([f"starts {a.new_attempt}"] if a.new_attempt else [])
    if a.deadline and a.new_state in ("issued", "accepted", *_TO_DECIDE):
        facts.append(f"expires {words.clock(a.deadline, sheet.now)}")
    head = div("sf-head-line", el("b", timeline.action_name(a.kind)), parts.action_state(a.new_state))
    became = None if a.reason == first.reason else div("sf-small", f"{a.new_state}: {a.reason}")
    help_text = div("sf-quiet sf-small", f"{timeline.action_help(a.kind)}.")
    show(head, div("sf-small", first.reason), became, help_text, div("sf-quiet sf-small", ", ".join(facts)))
    if a.new_state in _TO_DECIDE:
        _decision(sheet, a, asked)


def _decision(sheet: Sheet, a: ActionTransition, asked: Sequence[Request]) -> None:
    approve, cancel = (ask.prepare(kind, a.action, a.at, asked, sheet.now) for kind in (ask.APPROVE, ask.CANCEL))
    meaning = f"Ask the leader to do it: {timeline.action_help(a.kind)}"
    _choice([(approve, "Approve", meaning, "primary"), (cancel, "Cancel", "Ask the leader to leave it undone", "secondary")], sheet)


def _why(history: Sequence[FindingTransition]) -> None:
    show(parts.title("Why we think so"))
    last = {f.finding: f for f in history}
    opened = {f.finding: f for f in reversed(history) if f.new_state == "open"}
    if not last:
        show(div("sf-box sf-quiet", "No finding is attached."))
        return
    shown = sorted(last.values(), key=lambda f: f.new_state != "open")[:_SHOWN]
    show(*(_finding(f, opened.get(f.finding, f)) for f in shown))
    if more := len(last) - len(shown):
        show(div("sf-quiet sf-small", f"and {words.plural(more, 'finding')} more; the timeline tells of them."))


_SHOWN = 12  # findings that are shown one by one


def _finding(f: FindingTransition, opened: FindingTransition) -> Html:
    what = faults.BY_NAME[f.fault].summary if f.fault in faults.BY_NAME else f.fault
    head = div(
        "sf-head-line",
        el("b", f.detector),
        parts.badge(f.new_state, palette.state(f.new_state)),
        span("sf-quiet sf-small", f"confidence {words.whole_percent(f.confidence)}"),
    )
    cleared = div("sf-quiet sf-small", f"{f.new_state}: {f.reason}") if f.new_state != "open" and f.reason else None
    return div(
        "sf-box",
        head,
        div("sf-small", f"{what}; ", parts.where(f.node, f.rank, f.device)),
        div("sf-quiet sf-small", opened.reason),
        cleared,
    )


def _cost(sheet: Sheet, cost: Sequence[Spent], i: IncidentTransition) -> None:
    spent = {c.category: c.gpu_seconds for c in cost}
    show(parts.title("What it cost"))
    if not spent:
        show(div("sf-box sf-quiet", _no_cost(sheet, i)))
        return
    sentence = parts.loss_sentence(spent)
    show(div("sf-box", div("", el("b", f"{sentence[:1].upper()}{sentence[1:]}.")), parts.gap(), parts.bar(spent)))


def _no_cost(sheet: Sheet, i: IncidentTransition) -> str:
    if not i.run:
        return "No run was hit."
    reached = max((s.until for s in sheet.rows(run_spending, i.run)), default=None)
    if reached is None or reached <= (i.resolved_at or i.detected_at or i.at):
        return "The ledger has not reached it yet; it follows by about a minute."
    return f"Up to {words.clock(reached, sheet.now)} the ledger charges no GPU time to it."


def _captures(taken: Sequence[Event]) -> None:
    if not taken:
        return
    show(parts.title("Evidence", "taken before the attempt was stopped"))
    for e in taken:
        rank = "all ranks" if e.rank is None else f"rank {e.rank}"
        with st.expander(f"{words.evidence(e.code).capitalize()} of {rank}" + (f" on {e.node}" if e.node else ""), key=f"capture-{e.id}"):
            st.code(e.attrs.get("text") or e.message or "(empty)", language=None, wrap_lines=False)
            if path := e.attrs.get("path"):
                st.caption(f"Kept on the node as {_plain(path)}")


def _plain(text: str) -> str:
    """Text for a Markdown element: as code, so that nothing in it is markup."""
    return f"`{text.replace('`', chr(39))}`"
