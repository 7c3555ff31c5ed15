"""What changed before a run or an incident: what an attempt ran with, against the last good one, and what people recorded."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import streamlit as st

from dashboard import parts, words
from dashboard.markup import Html, div, el, join, show, span
from dashboard.read import Sheet
from pipeline.catalog.facts import ARGV, NODES, group
from pipeline.changed import Changed, Difference, absent, first_look, only_differing
from pipeline.queries.changes_between import changes_between
from pipeline.queries.what_changed import what_changed
from pipeline.records import Change, IncidentTransition
from pipeline.store import Store

_HOURS: Final = 24  # before an incident, in which a change may have caused it
_SHOWN: Final = 8  # differences and changes that are drawn at once
_LONG: Final = 160  # characters from which only the words that differ are shown

_NAMES: Final = {
    ARGV: "command line",
    "code.diff": "uncommitted changes",
    "code.trouble": "git",
    "package.trouble": "packages",
    "package.all": "all packages",
    "code.all": "all of the code",
    "driver.all": "all drivers",
    NODES: "nodes",
    "start.resumed_from": "resumed from",
    "driver.nvidia": "NVIDIA driver",
    "driver.nccl": "NCCL",
    "driver.kernel": "Linux kernel",
}


def of_run(sheet: Sheet, run: str, attempt: str) -> None:
    """For the run's newest attempt: what differs from the last good one, and the changes recorded since that one began."""
    found = sheet.rows(what_changed, run, attempt) if attempt else []
    if not found:
        return
    good = found[0].good
    since = good.began_at if good else sheet.ago(hours=_HOURS)
    _draw(sheet, found[0], sheet.rows(_recorded, run, since, sheet.now), sheet.now, "ago")


def of_incident(sheet: Sheet, i: IncidentTransition) -> None:
    """For the attempt that an incident hit: what differs from the last good one, and the changes of the hours before."""
    began = i.onset or i.detected_at or i.at
    found = sheet.rows(what_changed, i.run, i.attempt) if i.run and i.attempt else []
    recorded = sheet.rows(_recorded, i.incident, began - timedelta(hours=_HOURS), began)
    near = sorted(recorded, key=lambda c: bool(c.nodes) and i.node not in c.nodes.split(","))  # other nodes' changes last
    if found or near:
        _draw(sheet, found[0] if found else None, near, began, "before")


def _recorded(store: Store, _: str, since: datetime, until: datetime) -> list[Change]:
    """The changes of a period; the id makes this another question for another page (dashboard/read.py)."""
    return changes_between(store, since, until)


def _draw(sheet: Sheet, changed: Changed | None, recorded: Sequence[Change], until: datetime, how: str) -> None:
    note = (
        f"compared with {changed.good.attempt}, which began {words.when(changed.good.began_at, sheet.now)}"
        if changed and changed.good
        else ""
    )
    show(parts.title("What changed since the last good attempt", note))
    told = [parts.gap(), div("sf-quiet sf-small", "Changes that were recorded:")] if recorded and changed else []
    show(div("sf-box", _compared(changed), *told, *(_change(c, until, how) for c in recorded[:_SHOWN])))
    rest = list(changed.differences[_SHOWN:]) if changed else []
    if rest:
        with st.expander(f"{words.plural(len(rest), 'more difference')}", key=f"differences-{changed.attempt if changed else ''}"):
            show(_table(rest))


def _compared(changed: Changed | None) -> Html:
    if changed is None:
        return div("sf-quiet", "No run was hit; these changes were recorded before it:")
    if changed.good is None:
        return div("sf-quiet", changed.reason)
    told = join(el("b", first_look(changed)), " ", span("sf-quiet", changed.reason))
    return join(div("", told), parts.gap(), _table(changed.differences[:_SHOWN])) if changed.differences else div("", told)


def _table(differences: Sequence[Difference]) -> Html:
    return parts.table(("what", "before", "now"), [_row(d) for d in differences], tight=(0,))


def _row(d: Difference) -> tuple[Html | str, ...]:
    before, now = d.before, d.now
    if before and now and (d.name in (ARGV, NODES) or max(len(before), len(now)) > _LONG):
        before, now = only_differing(before, now)
    missing = absent(d.name)
    return name_of(d.name), *(span("sf-quiet", missing) if v is None else span("sf-mono", v) for v in (before, now))


def name_of(fact: str) -> str:
    """A fact's name as a person says it."""
    bare = fact.partition(".")[2]
    return _NAMES.get(fact, f"package {bare}" if group(fact) == "package" else bare)


def _change(c: Change, until: datetime, how: str) -> Html:
    where = f" on {c.nodes.replace(',', ', ')}" if c.nodes else ""
    passed = words.duration((until - c.at).total_seconds())
    return div("sf-small", el("b", f"{c.kind}: {c.what}"), span("sf-quiet", f"{where}, {passed} {how}, by {c.actor}"))
