"""Now: is everything fine, and if not, what is wrong, what runs, and what is at risk."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from dashboard import charts, palette, parts, words
from dashboard.markup import Html, div, join, link, show, span
from dashboard.parts import Figure
from dashboard.read import PACE, REFRESH, Sheet, settings
from pipeline.queries.incident_states import incident_states
from pipeline.queries.run_checkpoints import Checkpoint, run_checkpoints
from pipeline.queries.run_pace import RunPace, run_pace
from pipeline.queries.run_states import RunState, run_states
from pipeline.queries.signs_of_life import signs_of_life
from pipeline.queries.slo_latest import slo_latest
from pipeline.queries.spending_over_time import Slice, spending_over_time
from pipeline.records import MTTR, IncidentTransition, SloResult
from pipeline.vitals import AGENT, INGEST, JOBS, Health, Sign, Verdict, judge_signs, overall

_HOUR, _DAY = 3600.0, 86400
_FRESH = 5  # minutes for which a figure of slo counts: it is written every minute
_FINE, _COARSE, _SHORT = 10, 60, 900.0  # seconds of a bar of the goodput chart: fine while there is little to show
_LISTED = 20


def page() -> None:
    """Draw the page; it draws itself again every two seconds."""
    parts.tab("Now")
    _page()


@st.fragment(run_every=REFRESH)
def _page() -> None:
    sheet = Sheet()
    runs = sheet.rows(run_states, 500)
    going = [r for r in runs if r.state == "started"]
    names = sorted(r.run for r in going)
    incidents = sheet.rows(incident_states, 50)
    still = [i for i in incidents if i.new_state != "resolved"]
    signs = judge_signs(sheet.rows(signs_of_life, sheet.ago(hours=24)), names, settings(), sheet.now)
    pace = {p.run: p for p in sheet.rows(run_pace, [r.run for r in runs[:_LISTED]], seconds=PACE)}
    checkpoints = {c.run: c for c in sheet.rows(run_checkpoints, names)}
    axis = _axis(runs, sheet.now)
    slices = sheet.rows(spending_over_time, sheet.ago(hours=1), sheet.ago(), width=axis.width)
    results = sheet.rows(slo_latest, sheet.ago(minutes=_FRESH))

    parts.trouble(sheet)
    if sheet.blank:
        show(_status(_verdict(sheet, still, signs), still, going, sheet))
        return
    figures = _figures(sheet, still, going, checkpoints, slices, results)
    show(_status(_verdict(sheet, still, signs), still, going, sheet), parts.gap(), figures)
    _incidents(sheet, still, incidents)
    if runs or slices:
        _goodput(slices, axis)
    _runs(sheet, runs, pace, checkpoints)
    show(
        parts.title("Signs of life", "what is silent is unknown, never ok"),
        parts.gap(),
        _signs(signs, sheet),
        parts.foot(sheet),
    )


def _verdict(sheet: Sheet, still: Sequence[IncidentTransition], signs: Sequence[Sign]) -> Verdict:
    if sheet.failed_since:
        return Verdict(Health.UNKNOWN, "the store does not answer")
    return overall(still, signs)


def _status(verdict: Verdict, still: Sequence[IncidentTransition], going: Sequence[RunState], sheet: Sheet) -> Html:
    mark = palette.HEALTHS[verdict.health]
    line, sub = _sentence(verdict, still, going, sheet)
    worst = still[0] if still and verdict.health is not Health.UNKNOWN else None
    head = link("incident", line, "sf-status-line", incident=worst.incident) if worst else div("sf-status-line", line)
    return div("sf-status", div("sf-sign", mark.sign), div("", head, div("sf-status-sub", sub)), style=parts.tone(mark.colour))


def _sentence(verdict: Verdict, still: Sequence[IncidentTransition], going: Sequence[RunState], sheet: Sheet) -> tuple[str, str | Html]:
    training = f"{words.plural(len(going), 'run')} in progress"
    if verdict.health is Health.OK:
        return "Everything is fine.", f"No incident is open, every part was heard; {training}."
    if verdict.health is Health.UNKNOWN:
        return "Not known: part of the picture is missing.", f"{verdict.reason[:1].upper()}{verdict.reason[1:]}. {training.capitalize()}."
    worst = still[0]
    more = f"; {words.plural(len(still) - 1, 'other incident')} open" if len(still) > 1 else ""
    grade = "Not fine" if verdict.health is Health.FAILED else "Work goes on, with a warning"
    owner = f"acknowledged by {worst.acknowledged_by}" if worst.acknowledged_by else "nobody has acknowledged it"
    return (
        f"{grade}: {worst.title}",
        join(
            parts.where(worst.node, worst.rank, worst.device),
            f", {worst.new_state} since {words.when(worst.at, sheet.now)}, {owner}{more}.",
        ),
    )


def _figures(
    sheet: Sheet,
    still: Sequence[IncidentTransition],
    going: Sequence[RunState],
    checkpoints: dict[str, Checkpoint],
    slices: Sequence[Slice],
    results: Sequence[SloResult],
) -> Html:
    spent = _by_category(slices)
    measured = max((s.until for s in slices), default=None)
    risk = sum(parts.at_risk(r, checkpoints.get(r.run), sheet.now) or 0.0 for r in going)
    gpus = sum(r.ranks for r in going)
    lost = sum(parts.losses(spent).values())
    worst = still[0].severity if still else ""
    return parts.figures(
        (
            Figure(
                "Goodput, last hour",
                words.percent(parts.goodput(spent)),
                f"ledger up to {words.clock(min(measured, sheet.now), sheet.now)}" if measured else "the ledger is empty",
            ),
            Figure(
                "Open incidents",
                str(len(still)),
                f"worst is {worst}" if worst else "when last read" if sheet.failed_since else "nothing to do",
            ),
            Figure(
                "Lost to incidents, last hour",
                words.gpu_time(lost) if slices else words.NO_DATA,
                "waiting, restarting, lost progress",
            ),
            _mttr(results),
            Figure("Work at risk", words.gpu_time(risk) if going else words.gpu_time(0), "since the last complete checkpoints"),
            Figure("Runs in progress", str(len(going)), f"{words.plural(gpus, 'GPU')} or CPU ranks" if going else "none right now"),
        )
    )


def _mttr(results: Sequence[SloResult]) -> Figure:
    """The time to repair, as the job of slo wrote it last."""
    label = "MTTR, last 24 h"
    found = next((r for r in results if r.figure == MTTR and r.window_seconds == _DAY), None)
    if found is None:
        return Figure(label, words.NO_DATA, f"not computed in the last {_FRESH} min")
    if found.value is None:
        return Figure(label, words.NO_DATA, "no incident was resolved")
    pieces = (f"mean {words.duration(found.value)}", f"p90 {words.duration(found.p90)}", f"{found.count} resolved")
    note = " \u00b7 ".join(part.replace(" ", "\u00a0") for part in pieces)  # a line breaks between them only
    return Figure(label, words.duration(found.median), note)


def _by_category(slices: Sequence[Slice]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for s in slices:
        spent[s.category] = spent.get(s.category, 0.0) + s.gpu_seconds
    return spent


def _incidents(sheet: Sheet, still: Sequence[IncidentTransition], incidents: Sequence[IncidentTransition]) -> None:
    if still:
        show(parts.title("Open incidents", "worst first"), parts.gap(), div("sf-cards", *(parts.incident_card(i, sheet) for i in still)))
    elif incidents:
        recent = incidents[:3]
        show(
            parts.title("Latest incidents", "all resolved"), parts.gap(), div("sf-cards", *(parts.incident_card(i, sheet) for i in recent))
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that the goodput chart shows, in whole bars of `width` seconds, none of which ends after now."""

    since: datetime
    until: datetime
    width: int


def _axis(runs: Sequence[RunState], now: datetime) -> Axis:
    """An hour back from now, or less where the oldest run of the hour began later; at least one bar."""
    seen = [now - r.started_at for r in runs if r.state == "started" or (now - r.changed_at).total_seconds() < _HOUR]
    back = min(_HOUR, max((age.total_seconds() for age in seen), default=_HOUR))
    width = _FINE if back < _SHORT else _COARSE
    last = int(now.timestamp()) // width * width
    first = min(int(now.timestamp() - back) // width * width, last - width)
    return Axis(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC), width)


def _goodput(slices: Sequence[Slice], axis: Axis) -> None:
    whole = [s for s in slices if axis.since <= s.at < axis.until]
    bars = "a bar a minute" if axis.width == _COARSE else f"a bar every {axis.width} s"
    length = words.span((axis.until - axis.since).total_seconds())
    title = parts.title("Where the GPU time went", f"last {length}, {bars}; blue is goodput")
    if not whole:
        show(
            title,
            parts.gap(),
            parts.empty(f"Nothing has been accounted for in the last {length}.", "The ledger follows a run by about a minute."),
        )
        return
    show(title, parts.legend(palette.GROUPS))
    st.altair_chart(charts.goodput(whole, axis.width, axis.since, axis.until), alt="Share of GPU time by use over time")


def _runs(sheet: Sheet, runs: Sequence[RunState], pace: dict[str, RunPace], checkpoints: dict[str, Checkpoint]) -> None:
    show(parts.title("Runs", "in progress first" if runs else ""))
    if not runs:
        hint = "Start your own training under the launcher, or let the drill show everything with a real fault:"
        show(parts.empty("No run yet.", hint, "surefoot run -- torchrun --nproc-per-node=2 train.py", "surefoot drill kill"))
        return
    heads = ("run", "state", "attempt", "ranks", "step", "step time", "last step", "at risk", "restarts")
    rows = [_run_row(sheet, r, pace.get(r.run), checkpoints.get(r.run)) for r in runs[:_LISTED]]
    show(parts.table(heads, rows, right=range(3, 9), tight=(0, 1, 2), wide=(2, 3, 6, 7, 8)))
    if len(runs) > _LISTED:
        show(div("sf-foot", f"The first {_LISTED}. ", link("run", "All runs")))


def _run_row(sheet: Sheet, r: RunState, pace: RunPace | None, checkpoint: Checkpoint | None) -> tuple[Html | str, ...]:
    going = r.state == "started"
    state = parts.run_state(r.state)
    if going and r.attempt_state not in ("running", ""):
        state = join(state, " ", span("sf-quiet sf-small", r.attempt_state))
    name = join(link("run", r.run, run=r.run), div("sf-quiet sf-small", f"started {words.ago(r.started_at, sheet.now)}"))
    return (
        name,
        state,
        r.attempt or ("none yet" if going else "none"),
        str(r.ranks) if r.ranks else "unknown",
        f"{pace.step:,}" if pace else "-",
        words.duration(pace.step_seconds) if pace else "-",
        words.ago(pace.at, sheet.now) if pace else "-",
        words.gpu_time(parts.at_risk(r, checkpoint, sheet.now)) if going else "-",
        str(max(r.launches - 1, 0)),
    )


def _signs(signs: Sequence[Sign], sheet: Sheet) -> Html:
    """Each silent part by name; those that speak, counted by what they are."""
    silent = [_sign(s, sheet) for s in signs if s.health is not Health.OK]
    spoken: dict[str, list[Sign]] = {}
    for s in signs:
        if s.health is Health.OK:
            spoken.setdefault(s.component, []).append(s)
    return div("sf-signs", *silent, *(_spoken(component, some, sheet) for component, some in spoken.items()))


def _spoken(component: str, signs: Sequence[Sign], sheet: Sheet) -> Html:
    oldest = min(s.at for s in signs if s.at)
    name: Html | str = component if component in (JOBS, INGEST) else words.plural(len(signs), component)
    which = "the quietest " if len(signs) > 1 else ""
    if component == AGENT:
        name = link("fleet", name)
    return _life(
        name, f"{which}heard {words.ago(oldest, sheet.now)}", Health.OK, ", ".join(f"{s.node} {s.run}".strip() for s in signs[:20])
    )


def _sign(s: Sign, sheet: Sheet) -> Html:
    name = f"{s.component} of {s.run}" if s.run else s.component
    named = join(f"{name} on ", parts.node(s.node)) if s.node else name
    return _life(named, f"unknown: {f'heard {words.ago(s.at, sheet.now)}' if s.at else 'not heard yet'}", s.health, s.reason)


def _life(name: Html | str, text: str, health: Health, hover: str) -> Html:
    mark = palette.HEALTHS[health]
    inner = div("", div("sf-life-name", name), div("sf-quiet sf-small", text))
    look = "sf-life" if health is Health.OK else "sf-life sf-silent"
    return div(look, span("sf-dot", mark.sign), inner, style=parts.tone(mark.colour), title=hover)
