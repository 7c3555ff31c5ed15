"""Run: how fast it goes, what its steps consist of, its attempts, and where its GPU time went."""

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from dashboard import charts, palette, parts, runs, words
from dashboard.markup import Html, div, el, join, link, show, span
from dashboard.parts import Figure
from dashboard.read import PACE, REFRESH, Sheet, settings
from dashboard.views import changes, run_tables
from pipeline.catalog.layers import Severity
from pipeline.catalog.runs import ended_in_part
from pipeline.queries.run_checkpoints import Checkpoint, run_checkpoints
from pipeline.queries.run_incidents import run_incidents
from pipeline.queries.run_losses import run_losses
from pipeline.queries.run_pace import RunPace, run_pace
from pipeline.queries.run_phases import OTHER, run_phases
from pipeline.queries.run_spending import Spending, run_spending
from pipeline.queries.run_states import RunState, run_states
from pipeline.queries.run_steps import run_steps
from pipeline.queries.unwatched_nodes import unwatched_nodes
from pipeline.records import IncidentTransition
from pipeline.vitals import LAUNCHER, patience
from pipeline.wording import listed

_POINTS, _LINES, _LISTED, _NAMED = 2000, 8, 100, 4
_AGENTS = 10  # minutes in which an agent that is there has spoken
_WINDOWS = {"15 min": 15, "1 h": 60, "6 h": 360, "all": 60 * 24 * 400}


def page() -> None:
    """Draw the run that the address names, or the list of runs."""
    run = st.query_params.get("run", "")
    parts.tab(f"Run {run}" if run else "Runs")
    if not run:
        _list()
        return
    if runs.find(Sheet(), run) is None:
        _missing(run)
        return
    _head(run)
    show(parts.title("Steps"))
    chosen = st.segmented_control("Window", list(_WINDOWS), default="1 h", key="window", bind="query-params", label_visibility="collapsed")
    window = chosen or "1 h"
    pace, loss, phases = st.tabs(["Step time", "Loss", "Phases"])
    with pace:
        _step_times(run, _WINDOWS[window])
    with loss:
        _losses(run, _WINDOWS[window])
    with phases:
        _phases(run, _WINDOWS[window])
    run_tables.draw(run)


@st.fragment(run_every=REFRESH)
def _list() -> None:
    sheet = Sheet()
    found = sheet.rows(run_states, _LISTED)
    parts.trouble(sheet)
    if sheet.blank:
        return
    show(parts.title("Runs", "in progress first, then the newest" if found else ""))
    if not found:
        show(
            parts.empty(
                "No run yet.",
                "Start your training under the launcher:",
                "surefoot run -- torchrun --nproc-per-node=2 train.py",
                "surefoot drill kill",
            )
        )
        return
    rows = [
        (
            link("run", r.run, run=r.run),
            parts.run_state(r.state),
            join(words.clock(r.started_at, sheet.now), div("sf-quiet sf-small", words.ago(r.started_at, sheet.now))),
            span("sf-mono", parts.command(r.command)),
        )
        for r in found
    ]
    more = div("sf-foot", f"The first {_LISTED} are shown.") if len(found) == _LISTED else None
    show(parts.table(("run", "state", "started", "command"), rows, tight=(0, 1, 2), wide=(3,)), more, parts.foot(sheet))


@st.fragment(run_every=REFRESH)
def _missing(run: str) -> None:
    """Said until the run is there, or the store is."""
    sheet = Sheet()
    if runs.find(sheet, run):
        st.rerun()
    parts.trouble(sheet)
    if not sheet.blank:
        show(parts.missing("run", run))


@st.fragment(run_every=REFRESH)
def _head(run: str) -> None:
    sheet = Sheet()
    state = runs.find(sheet, run)
    pace = next(iter(sheet.rows(run_pace, [run], seconds=PACE)), None)
    checkpoint = next(iter(sheet.rows(run_checkpoints, [run])), None)
    spending = sheet.rows(run_spending, run)
    incidents = _latest(sheet.rows(run_incidents, run))
    unwatched = _unwatched(sheet, state)
    parts.trouble(sheet)
    if state is None or sheet.blank:
        return
    show(_title(state, sheet), unwatched, parts.gap(), _figures(sheet, state, pace, checkpoint, spending))
    changes.of_run(sheet, run, state.attempt)
    _incidents(sheet, incidents, spending)
    until = max((s.until for s in spending), default=None)
    show(
        parts.title("Where its GPU time went", f"ledger up to {words.when(until, sheet.now)}" if until else ""),
        parts.gap(),
        div("sf-box", parts.bar(by_category(spending))),
    )


def _title(r: RunState, sheet: Sheet) -> Html:
    went = words.when(r.started_at, sheet.now)
    facts = join(span("", "on ", parts.node(r.node) if r.node else "an unknown node"), " · ", span("", f"started {went}"))
    over = runs.is_over(r)
    if over:
        code = "" if r.exit_code is None else f", its command {'was ' * (r.exit_code < 0)}{words.ended(r.exit_code)}"
        facts = join(facts, " · ", span("", f"{r.state} {words.when(r.changed_at, sheet.now)}{code}"))
    said = f"{r.reason[:1].upper()}{r.reason[1:].rstrip('.')}."
    if r.state == "finished" and ended_in_part(r.reason):
        unsure = parts.badge("not all nodes are known to have ended well", palette.severity(Severity.WARNING))
        reason: Html | None = div("", unsure, f" {said} Look whether the command still runs there, or the node was lost.")
    else:
        reason = div("sf-quiet", said) if r.reason and over else None
    attempt = f"attempt {r.attempt}: {runs.attempt_state(r.attempt_state, over=over)}" if r.attempt else "no attempt" + " yet" * (not over)
    head = div("sf-head-line", el("h1", r.run), parts.run_state(r.state), span("sf-chip", attempt))
    return div("sf-head", head, div("sf-quiet", facts), reason, div("sf-code", parts.command(r.command)) if r.command else None)


def _unwatched(sheet: Sheet, r: RunState | None) -> Html | None:
    """Of a run in progress, the nodes whose loss nobody would notice."""
    if r is None or runs.is_over(r):
        return None
    heard, until = sheet.ago(seconds=patience(LAUNCHER, settings())), sheet.ago(seconds=-REFRESH)
    if not (found := sheet.rows(unwatched_nodes, r.run, heard, until, sheet.ago(minutes=_AGENTS))):
        return None
    said = f" A lost node would not be noticed: start surefoot agent on {listed(found, _NAMED)}."
    return div("", parts.badge("no agent", palette.severity(Severity.WARNING)), said)


def _figures(sheet: Sheet, r: RunState, pace: RunPace | None, checkpoint: Checkpoint | None, spending: Sequence[Spending]) -> Html:
    over = runs.is_over(r)
    yet = "" if over else " yet"
    risk = 0.0 if over else parts.at_risk(r, checkpoint, sheet.now)
    saved = f"checkpoint of step {checkpoint.step}, {words.ago(checkpoint.at, sheet.now)}" if checkpoint else f"no complete checkpoint{yet}"
    spent = by_category(spending)
    ranks = words.plural(r.ranks, "rank") if r.ranks else "ranks unknown"
    return parts.figures(
        (
            Figure(
                "Step",
                f"{pace.step:,}" if pace else words.NO_DATA,
                f"completed {words.ago(pace.at, sheet.now)}" if pace else f"no step completed{yet}",
            ),
            Figure("Step time", words.duration(pace.step_seconds if pace else None), f"median of its last {PACE // 60} min"),
            Figure("Loss", f"{pace.loss:.4g}" if pace and pace.loss is not None else words.NO_DATA, "at the last step"),
            Figure("Goodput so far", words.percent(parts.goodput(spent)), "productive over all GPU time"),
            Figure("Work at risk", words.gpu_time(risk), saved),
            Figure("Restarts", str(max(r.launches - 1, 0)), f"{words.plural(r.launches, 'attempt')}, {ranks}"),
        )
    )


def by_category(spending: Sequence[Spending], incident: str | None = None) -> dict[str, float]:
    """GPU-seconds by category, of everything or of one incident."""
    spent: dict[str, float] = {}
    for s in spending:
        if incident is None or s.incident == incident:
            spent[s.category] = spent.get(s.category, 0.0) + s.gpu_seconds
    return spent


def _latest(history: Sequence[IncidentTransition]) -> list[IncidentTransition]:
    last = {i.incident: i for i in history}
    return sorted(last.values(), key=lambda i: (i.new_state == "resolved", -i.at.timestamp()))


def _incidents(sheet: Sheet, incidents: Sequence[IncidentTransition], spending: Sequence[Spending]) -> None:
    if not incidents:
        return
    cards = []
    for i in incidents[:5]:
        cost = by_category(spending, i.incident)
        cards.append(parts.incident_card(i, sheet, parts.loss_sentence(cost) if cost else ""))
    show(
        parts.title("Incidents of this run", words.plural(len(incidents), "incident")),
        parts.gap(),
        div("sf-cards", *cards),
    )


def _range(sheet: Sheet, run: str, minutes: int) -> tuple[datetime, datetime]:
    """The window back from now, or from the end of a run that is over."""
    state = runs.find(sheet, run)
    if state and runs.is_over(state):
        back = (sheet.now - state.changed_at).total_seconds()
        return sheet.ago(seconds=back, minutes=minutes), sheet.ago(seconds=back - 2 * REFRESH)
    return sheet.ago(minutes=minutes), sheet.ago(seconds=-REFRESH)


@st.fragment(run_every=REFRESH)
def _step_times(run: str, minutes: int) -> None:
    sheet = Sheet()
    since, until = _range(sheet, run, minutes)
    points = sheet.rows(run_steps, run, since, until, bins=_POINTS // _LINES, ranks=_LINES)
    if not points:
        _no_steps(sheet)
        return
    show(parts.legend(charts.rank_colours(points)))
    st.altair_chart(charts.step_times(points), alt="Step time over steps by rank")
    ranks, attempts = (len({getattr(p, name) for p in points}) for name in ("rank", "attempt"))
    slowest = f"The {ranks} slowest ranks. " if ranks == _LINES else ""
    begins = " A dashed line: a new attempt begins." if attempts > 1 else ""
    show(div("sf-quiet sf-small", f"{slowest}The first step of each attempt is left out: its time belongs to the start.{begins}"))


@st.fragment(run_every=REFRESH)
def _losses(run: str, minutes: int) -> None:
    sheet = Sheet()
    since, until = _range(sheet, run, minutes)
    points = sheet.rows(run_losses, run, since, until, bins=_POINTS // 2)
    if not any(p.loss is not None for p in points):
        _no_steps(sheet, "No step of this window has a loss. Set s.loss inside monitor.step().")
        return
    st.altair_chart(charts.losses(points), alt="Loss over steps")
    bad = sum(p.nonfinite for p in points)
    said = f"{words.plural(bad, 'step')} had a loss that was NaN or infinite." if bad else "Every loss was finite."
    show(div("sf-quiet sf-small", said))


@st.fragment(run_every=REFRESH)
def _phases(run: str, minutes: int) -> None:
    sheet = Sheet()
    since, until = _range(sheet, run, minutes)
    points = sheet.rows(run_phases, run, since, until, bins=120)
    if not points:
        _no_steps(sheet)
        return
    show(parts.legend(charts.phase_colours(points)))
    st.altair_chart(charts.phases(points), alt="Seconds a step by phase")
    other = " Other: time inside a step that no phase covers." if any(p.phase == OTHER for p in points) else ""
    show(div("sf-quiet sf-small", f"Mean over all ranks.{other}"))


def _no_steps(sheet: Sheet, hint: str = "Choose a longer window, or wrap your loop with surefoot.StepMonitor to see its steps.") -> None:
    if not sheet.blank:
        show(parts.empty("No step to show in this window.", hint))
