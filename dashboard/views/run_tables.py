"""Below the charts of a run: its attempts, what each rank is doing or how it ended, and the end of its log."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import streamlit as st

from dashboard import palette, parts, runs, words
from dashboard.markup import Html, div, el, show, span
from dashboard.read import REFRESH, Sheet
from pipeline.queries.attempt_exits import attempt_exits
from pipeline.queries.attempt_history import attempt_history
from pipeline.queries.run_log_tail import LogLine, run_log_tail
from pipeline.queries.run_ranks import run_ranks
from pipeline.queries.run_states import RunState
from pipeline.records import AttemptTransition, Event, Live

_LOG_LINES = 200
_LIVE = 2.5  # seconds after which a rank's last word is old


@st.fragment(run_every=REFRESH)
def draw(run: str) -> None:
    """Draw what stands below the charts of `run`."""
    sheet = Sheet()
    state = runs.find(sheet, run)
    attempts = _by_attempt(sheet.rows(attempt_history, run))
    last = next(reversed(attempts), "")
    ranks = sheet.rows(run_ranks, run, last) if last else []
    exits = sheet.rows(attempt_exits, run, last) if last else []
    lines = sheet.rows(run_log_tail, run, _LOG_LINES)
    if sheet.blank or state is None:
        return
    _attempts(sheet, state, attempts, ranks)
    if ranks:
        over = runs.is_over(state) or attempts[last][-1].new_state == runs.ENDED
        _ranks(sheet, last, ranks, {(e.attempt, e.rank): e for e in exits}, over=over)
    show(parts.title("Log", f"the last {words.plural(len(lines), 'line')}" if lines else ""))
    show(_log(lines) if lines else _no_log(over=runs.is_over(state)), parts.foot(sheet))


def _by_attempt(history: Sequence[AttemptTransition]) -> dict[str, list[AttemptTransition]]:
    """The transitions of each attempt, the attempts in the order of their launch."""
    found: dict[str, list[AttemptTransition]] = {}
    for t in sorted(history, key=lambda t: (t.launch, t.at)):
        found.setdefault(t.attempt, []).append(t)
    return found


def _attempts(sheet: Sheet, run: RunState, attempts: dict[str, list[AttemptTransition]], ranks: Sequence[Live]) -> None:
    show(parts.title("Attempts", "newest first" if len(attempts) > 1 else ""))
    if not attempts:
        over = runs.is_over(run)
        then = "The run was over before one began." if over else "The launcher asks for one when it starts; this takes about a second."
        show(parts.empty("No attempt." if over else "No attempt yet.", then))
        return
    rows, later = [], runs.is_over(run)  # whether something later says that an attempt cannot go on
    heard = max((r.at for r in ranks), default=None)
    for history in reversed(attempts.values()):
        rows.append(_attempt_row(sheet, history, heard, over=later))
        later, heard = later or history[-1].new_state != "issued", None
    heads = ("attempt", "state", "began", "lasted", "resumed from", "exit", "why")
    show(parts.table(heads, rows, right=(3, 5), tight=(0, 1, 2)))


def _attempt_row(sheet: Sheet, history: Sequence[AttemptTransition], heard: datetime | None, *, over: bool) -> tuple[Html | str, ...]:
    first, last = history[0], history[-1]
    state = runs.attempt_state(last.new_state, over=over)
    code = next((t.exit_code for t in reversed(history) if t.exit_code is not None), None)
    resumed = next((t.resume_from for t in history if t.resume_from), "")
    lasted, why = words.duration(words.between(first.at, last.at if state == runs.ENDED else sheet.now)), last.reason
    if state == runs.LOST:
        lasted, why = "unknown", f"unknown since {words.clock(max(last.at, heard or last.at), sheet.now)}: nobody told how it ended"
    elif state == runs.NEVER_STARTED:
        lasted, why = "-", "the run was over before the launcher took it up"
    return (
        last.attempt,
        parts.badge(state, palette.state(state)),
        words.clock(first.at, sheet.now),
        lasted,
        span("sf-mono", resumed) if resumed else "the start",
        "-" if code is None else words.ended(code).removeprefix("exited with ").removeprefix("killed by "),
        why,
    )


def _ranks(sheet: Sheet, attempt: str, ranks: Sequence[Live], exits: Mapping[tuple[str, int | None], Event], *, over: bool) -> None:
    note = f"of {attempt}, which is over" if over else f"of {attempt}, longest without progress first"
    heads = ("rank", "node", "last step", "last phase", "process", "ended") if over else _RANK_HEADS
    row = _ended_row if over else _rank_row
    ordered = sorted(ranks, key=lambda r: r.rank) if over else ranks
    rows = [row(sheet, r, exits.get((r.attempt, r.rank))) for r in ordered]
    show(parts.title("Ranks", note), parts.gap(), parts.table(heads, rows, right=(0, 2) if over else (0, 2, 4)))


_RANK_HEADS = ("rank", "node", "step", "phase", "in it for", "process", "heard")


def _rank_row(sheet: Sheet, r: Live, end: Event | None) -> tuple[Html | str, ...]:
    """A rank of an attempt that goes on."""
    if end:
        return (*_place(r), "-", _how(end), f"ended {words.ago(end.at, sheet.now)}")
    stale = (sheet.now - r.at).total_seconds() > _LIVE
    heard = span("sf-quiet", f"unknown: heard {words.ago(r.at, sheet.now)}") if stale else words.ago(r.at, sheet.now)
    return (*_place(r), "-" if stale else words.duration(words.between(r.since, r.at)), words.process(r.process_state), heard)


def _ended_row(sheet: Sheet, r: Live, end: Event | None) -> tuple[Html | str, ...]:
    """A rank of an attempt that is over, whose launcher may have told how the rank ended."""
    if end is None:
        return (*_place(r), words.ended(None), span("sf-quiet", f"last heard {words.ago(r.at, sheet.now)}"))
    return (*_place(r), _how(end), words.ago(end.at, sheet.now))


def _place(r: Live) -> tuple[str, Html, str, str]:
    phase = r.phase or "between phases"
    return str(r.rank), parts.node(r.node), "-" if r.step is None else f"{r.step:,}", f"{phase}: {r.collective}" if r.collective else phase


def _how(end: Event) -> str:
    signal, stopped_by = end.attrs.get("signal", ""), end.attrs.get("stopped_by", "")
    if not stopped_by:
        return words.ended(int(end.code) if end.code else None, signal)
    return f"stopped by {'the launcher' if stopped_by == 'launcher' else stopped_by}" + (f" ({signal})" if signal else "")


def _no_log(*, over: bool) -> Html:
    hint = "What the ranks print under surefoot run appears here"
    return parts.empty("No log line.", f"{hint}; this run printed nothing.") if over else parts.empty("No log line yet.", f"{hint}.")


def _log(lines: Sequence[LogLine]) -> Html:
    """Newest line at the bottom, where the box starts (its order is reversed in CSS)."""
    drawn = [
        div("", el("time", f"{line.at:%H:%M:%S} "), span("sf-quiet", f"[{line.rank}] ") if line.rank else None, line.text)
        for line in reversed(lines)
    ]
    return div("sf-log", *drawn)
