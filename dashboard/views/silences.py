"""Silences: what Surefoot leaves undone because somebody asked it to, and the banner while all acting is paused."""

from collections.abc import Sequence

import streamlit as st

from dashboard import palette, parts, words
from dashboard.markup import Html, div, el, show
from dashboard.read import REFRESH, Sheet
from pipeline.hold_records import HoldTransition
from pipeline.queries.maintenance_since import maintenance_since
from pipeline.queries.pauses_since import pauses_since
from pipeline.queries.silences_since import silences_since

_HEADS = ("state", "about", "from", "until", "owner", "reason", "id")
_ENDED_SHOWN = 24  # hours


@st.fragment(run_every=REFRESH)
def banner() -> None:
    """On every page: that Surefoot does not act, for as long as that is so."""
    sheet = Sheet()
    held = [p for p in sheet.rows(pauses_since, sheet.ago(hours=_ENDED_SHOWN)) if p.holds(sheet.now)]
    if not held:
        return
    until = f"until {words.when(held[-1].ends_at, sheet.now)}" if held[-1].ends_at else "until somebody resumes it"
    said = f"{held[-1].owner} paused it at {words.clock(held[-1].starts_at, sheet.now)}, {until}: {held[-1].reason}. "
    still = "Detection and pages go on. Resume it with "
    colour = palette.state("waiting").colour
    look = f"border:1px solid {colour};border-left:5px solid {colour}"
    show(div("sf-banner", el("b", "Surefoot does not act. "), said, still, el("code", "surefoot actions resume"), ".", style=look))


def page() -> None:
    """Draw the page; it draws itself again every two seconds."""
    parts.tab("Silences")
    _page()


@st.fragment(run_every=REFRESH)
def _page() -> None:
    sheet = Sheet()
    since = sheet.ago(hours=_ENDED_SHOWN)
    pauses, silences, windows = (sheet.rows(question, since) for question in (pauses_since, silences_since, maintenance_since))
    parts.trouble(sheet)
    if sheet.blank:
        return
    add = '--for 2h --reason "why"'
    _section(sheet, "Silences", "pages are held back", silences, f"surefoot silence add node=node-7 {add}")
    _section(sheet, "Maintenance", "neither pages nor actions", windows, f"surefoot maintenance add node=node-7 {add}")
    _section(sheet, "Acting paused", "no action is issued at all", pauses, f"surefoot actions pause {add.replace('2h', '30m')}")
    show(parts.foot(sheet))


def _section(sheet: Sheet, text: str, note: str, held: Sequence[HoldTransition], command: str) -> None:
    show(parts.title(text, note), parts.gap())
    if not held:
        show(parts.empty("None.", "To begin one:", command))
        return
    show(parts.table(_HEADS, [_row(h, sheet) for h in _order(held, sheet)], tight=(0, 2, 3, 6)))


def _order(held: Sequence[HoldTransition], sheet: Sheet) -> list[HoldTransition]:
    """What holds first, then what is planned, then what is over; in each the one that ends first."""
    rank = {"holds": 0, "planned": 1, "ended": 2}
    return sorted(held, key=lambda h: (rank[_state(h, sheet)], (h.ends_at or h.starts_at), h.hold))


def _row(h: HoldTransition, sheet: Sheet) -> tuple[Html | str, ...]:
    until = words.when(h.ends_at, sheet.now) if h.ends_at else "until resumed"
    if h.new_state == "ended":
        until = f"ended {words.when(h.at, sheet.now)}"
    return _state(h, sheet), h.matcher or "everything", words.clock(h.starts_at, sheet.now), until, h.owner, h.reason, h.hold


def _state(h: HoldTransition, sheet: Sheet) -> str:
    if h.holds(sheet.now):
        return "holds"
    return "planned" if h.new_state != "ended" and h.starts_at > sheet.now else "ended"
