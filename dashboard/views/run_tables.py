"""Below the charts of a run: its attempts, what each rank is doing, and the end of its log."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import palette, parts, words
from dashboard.markup import Html, div, el, show, span
from dashboard.read import REFRESH, Sheet
from pipeline.queries.attempt_history import attempt_history
from pipeline.queries.run_log_tail import LogLine, run_log_tail
from pipeline.queries.run_ranks import run_ranks
from pipeline.records import AttemptTransition, Live

_LOG_LINES = 200
_LIVE = 2.5  # seconds after which a rank's last word is old


@st.fragment(run_every=REFRESH)
def draw(run: str) -> None:
    """Draw what stands below the charts of `run`."""
    sheet = Sheet()
    attempts = sheet.rows(attempt_history, run)
    last = attempts[-1].attempt if attempts else ""
    ranks = sheet.rows(run_ranks, run, last) if last else []
    lines = sheet.rows(run_log_tail, run, _LOG_LINES)
    if sheet.blank:
        return
    show(parts.title("Attempts", "newest first"))
    heads = ("attempt", "state", "began", "lasted", "resumed from", "exit", "why")
    if attempts:
        show(
            parts.table(
                heads,
                _attempt_rows(sheet, attempts),
                right=(3, 5),
                tight=(0, 1, 2),
            )
        )
    else:
        show(parts.empty("No attempt yet.", "The launcher asks for one when it starts; this takes about a second."))
    if ranks:
        show(
            parts.title("Ranks", f"of {last}, longest without progress first"),
            parts.gap(),
            parts.table(
                ("rank", "node", "step", "phase", "in it for", "process", "heard"), [_rank_row(sheet, r) for r in ranks], right=(0, 2, 4)
            ),
        )
    show(parts.title("Log", f"the last {words.plural(len(lines), 'line')}" if lines else ""))
    show(
        _log(lines) if lines else parts.empty("No log line yet.", "Lines that the ranks print under `surefoot run` appear here."),
        parts.foot(sheet),
    )


def _attempt_rows(sheet: Sheet, history: Sequence[AttemptTransition]) -> list[tuple[Html | str, ...]]:
    by_attempt: dict[str, list[AttemptTransition]] = {}
    for t in history:
        by_attempt.setdefault(t.attempt, []).append(t)
    return [_attempt_row(sheet, transitions) for transitions in reversed(by_attempt.values())]


def _attempt_row(sheet: Sheet, history: Sequence[AttemptTransition]) -> tuple[Html | str, ...]:
    first, last = history[0], history[-1]
    over = last.new_state == "ended"
    code = next((t.exit_code for t in reversed(history) if t.exit_code is not None), None)
    resumed = next((t.resume_from for t in history if t.resume_from), "")
    lasted = words.duration(words.between(first.at, last.at if over else sheet.now))
    state = parts.badge(last.new_state, palette.state(last.new_state))
    return (
        last.attempt,
        state,
        words.clock(first.at, sheet.now),
        lasted,
        span("sf-mono", resumed or "the start"),
        "-" if code is None else str(code),
        last.reason,
    )


def _rank_row(sheet: Sheet, r: Live) -> tuple[Html | str, ...]:
    stale = (sheet.now - r.at).total_seconds() > _LIVE
    phase = r.phase or "between phases"
    if r.collective:
        phase = f"{phase}: {r.collective}"
    process = _PROCESS.get(r.process_state, r.process_state or "unknown")
    heard = span("sf-quiet", f"unknown: heard {words.ago(r.at, sheet.now)}") if stale else words.ago(r.at, sheet.now)
    return (
        str(r.rank),
        r.node,
        "-" if r.step is None else f"{r.step:,}",
        phase,
        "-" if stale else words.duration(words.between(r.since, r.at)),
        process,
        heard,
    )


_PROCESS: Mapping[str, str] = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "gone",
}


def _log(lines: Sequence[LogLine]) -> Html:
    """Newest line at the bottom, where the box starts (its order is reversed in CSS)."""
    drawn = [
        div("", el("time", f"{line.at:%H:%M:%S} "), span("sf-quiet", f"[{line.rank}] ") if line.rank else None, line.text)
        for line in reversed(lines)
    ]
    return div("sf-log", *drawn)
