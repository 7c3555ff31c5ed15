"""Below the charts of a node: its readings by family, what its agent cannot read, what happened on it, what is held back on it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import streamlit as st

from dashboard import nodes, palette, parts, readings, words
from dashboard.markup import Child, Html, div, el, join, link, show, span
from dashboard.read import REFRESH, Sheet, settings
from pipeline.catalog.events import PHASE
from pipeline.catalog.metrics import AGENT as COLLECTORS
from pipeline.catalog.metrics import BY_NAME, FAMILIES, Family, Kind
from pipeline.nodes import HeldBack, Node, NodeState
from pipeline.queries.node_events import node_events
from pipeline.queries.node_failures import node_failures
from pipeline.queries.node_readings import DeviceNow, node_readings
from pipeline.records import Event
from pipeline.vitals import AGENT, patience

_MINUTES: Final = 10  # before the node's last word, in which a device must have been read to be shown
_DAYS: Final = 7
_EVENTS: Final = 50
_OK: Final = "agent.collect.ok"


@st.fragment(run_every=REFRESH)
def draw(name: str) -> None:
    """Draw what stands below the charts of node `name`."""
    sheet = Sheet()
    node = next((n for n in nodes.everything(sheet) if n.name == name), None)
    devices: Sequence[DeviceNow] = []
    if node and (last := node.signs.agent_at):
        back = max((sheet.now - last).total_seconds(), 0.0)
        devices = sheet.rows(node_readings, name, sheet.ago(seconds=back, minutes=_MINUTES), sheet.ago(seconds=back - 2 * REFRESH))
    failures = sheet.rows(node_failures, name)
    events = sheet.rows(node_events, name, sheet.ago(days=_DAYS), [PHASE.name], limit=_EVENTS)
    if node is None or sheet.blank:
        return
    _readings(sheet, node, devices)
    _unreadable(sheet, devices, failures)
    _events(sheet, events)
    _holds(sheet, node)
    show(parts.foot(sheet))


# --- readings --------------------------------------------------------------------------------


def _readings(sheet: Sheet, node: Node, devices: Sequence[DeviceNow]) -> None:
    newest = max((d.at for d in devices), default=None)
    show(parts.title("Latest readings", f"the agent's last pass was {words.when(newest, sheet.now)}" if newest else ""))
    if newest is None:
        hint = "Its agent was not heard in the last 24 hours." if node.signs.agent_at is None else "Its agent told of nothing that is kept."
        show(parts.empty("No reading to show.", hint))
        return
    if _old(newest, sheet.now):
        show(div("sf-banner", el("b", "These readings are stale. "), f"They are from {words.when(newest, sheet.now)}; nothing came since."))
    for family in FAMILIES:
        mine = [d for d in devices if d.family == family.name]
        if mine and family is not COLLECTORS:
            what = family.help.removeprefix("A ").removeprefix("An ")
            show(div("sf-family", what[:1].upper() + what[1:], span("sf-quiet", f" {len(mine)}") if len(mine) > 1 else None))
            show(_one(mine[0], family, sheet.now) if family.identity == ("node",) else _many(mine, family, newest, sheet.now))


def _one(device: DeviceNow, family: Family, now: datetime) -> Html:
    """All metrics of a single device, with what each of them is."""
    rows: list[tuple[Child, ...]] = []
    for metric in family.metrics:
        last = device.values.get(metric.name)
        if last is None:
            rows.append((readings.help_of(metric), span("sf-quiet", "not read"), "-", "-"))
            continue
        grows = readings.rate(metric, last.a_second) if metric.kind is Kind.COUNTER and last.a_second is not None else "-"
        rows.append((readings.help_of(metric), readings.amount(metric, last.value), grows, _age(last.at, now)))
    return parts.table(("what", "value", "grows by", "read"), rows, right=(1, 2, 3))


def _many(devices: Sequence[DeviceNow], family: Family, newest: datetime, now: datetime) -> Html:
    """A row a device: what identifies it, then its metrics."""
    places = [key for key in family.identity if key != "node"]
    metrics = [m for m in family.metrics if any(m.name in d.values for d in devices)]
    heads = [place.replace("_", " ") for place in places] + [readings.name(m) for m in metrics] + ["read"]
    rows = []
    for d in devices:
        named = [span("sf-device", d.attrs.get(place) or d.name) for place in places]
        gone = (newest - d.at).total_seconds() > patience(AGENT, settings())
        read = span("sf-stale", f"not since {words.ago(d.at, now)}") if gone else _age(d.at, now)
        rows.append([*named, *(readings.cell(m, d, now) for m in metrics), read])
    return parts.table(heads, rows, right=range(len(places), len(heads)))


def _age(at: datetime, now: datetime) -> Html:
    return span("sf-stale" if _old(at, now) else "sf-quiet", words.ago(at, now))


def _old(at: datetime, now: datetime) -> bool:
    return (now - at).total_seconds() > patience(AGENT, settings())


# --- what could not be read ------------------------------------------------------------------


def _unreadable(sheet: Sheet, devices: Sequence[DeviceNow], failures: Sequence[Event]) -> None:
    collectors = [d for d in devices if d.family == COLLECTORS.name]
    show(parts.title("What its agent reads", "by collector; those that give nothing first" if collectors else ""), parts.gap())
    if not collectors:
        show(div("sf-box sf-quiet", "Its agent told nothing about its collectors lately."))
        return
    why = {e.code: e for e in failures}
    ordered = sorted(collectors, key=lambda d: (_value(d, _OK) != 0, d.name))
    rows = [_collector(d, why.get(d.attrs.get("collector", d.name)), sheet.now) for d in ordered]
    heads = ("collector", "state", "why not", "last readings", "a pass takes", "left out")
    show(parts.table(heads, rows, right=(3, 4, 5), tight=(0, 1)))
    show(div("sf-quiet sf-small", "Left out: values beyond what is possible for them, since the agent started."))


def _collector(d: DeviceNow, failure: Event | None, now: datetime) -> tuple[Child, ...]:
    works = _value(d, _OK) == 1
    success, took, rejected = (_value(d, f"agent.{name}") for name in ("last_success", "collect.time", "rejected"))
    told = BY_NAME["agent.last_success"][1]
    never = span("sf-stale", "none since its start")
    mark = palette.NODES[NodeState.OK if works else NodeState.DEGRADED if success else NodeState.UNKNOWN]
    return (
        d.attrs.get("collector", d.name),
        parts.badge("reads" if works else "reads nothing", mark),
        "-" if works else (failure.message if failure else "") or "not told",
        never
        if success is None
        else span("", words.ago(datetime.fromtimestamp(success, now.tzinfo), now), title=readings.amount(told, success)),
        words.duration(took),
        "-" if rejected is None else f"{rejected:,.0f}",
    )


def _value(d: DeviceNow, metric: str) -> float | None:
    last = d.values.get(metric)
    return last.value if last else None


# --- what happened, and what is held back ----------------------------------------------------


def _events(sheet: Sheet, events: Sequence[Event]) -> None:
    show(parts.title("Events", f"of the last {_DAYS} days, newest first" if events else ""), parts.gap())
    if not events:
        show(div("sf-box sf-quiet", f"Nothing was told of this node in the last {_DAYS} days."))
        return
    show(parts.table(("when", "what", "severity", "run and rank", "details"), [_event(e, sheet) for e in events], tight=(0, 1, 2)))
    if len(events) == _EVENTS:
        show(div("sf-foot", f"The newest {_EVENTS}."))


def _event(e: Event, sheet: Sheet) -> tuple[Child, ...]:
    about: list[Child] = [link("run", e.run, run=e.run)] if e.run else []
    about += [f" rank {e.rank}"] if e.rank is not None else []
    about += [f" {e.device}"] if e.device else []
    what = words.category(e.kind).capitalize().replace("Oom", "OOM")
    told = ": ".join(part for part in (e.code, e.message) if part)
    count = f"{e.count:,} times. " if e.count > 1 else ""
    return (
        join(words.clock(e.at, sheet.now), div("sf-quiet sf-small", words.ago(e.at, sheet.now))),
        what,
        parts.badge(e.severity, palette.severity(e.severity)),
        join(*about) if about else "-",
        f"{count}{told}" or "-",
    )


def _holds(sheet: Sheet, node: Node) -> None:
    show(parts.title("Held back here", "silences keep pages back, maintenance keeps actions back, too"), parts.gap())
    live = sorted((h for h in node.held if not _over(h, sheet.now)), key=lambda h: (h.hold.starts_at, h.hold.hold))
    if live:
        rows = [_held(h, sheet) for h in live]
        show(parts.table(("what", "state", "about", "until", "owner", "reason", "to end it"), rows, tight=(0, 1)), parts.gap())
    add = f'add node={node.name} --for 2h --reason "why"'
    hint = "To begin another:" if live else "While somebody works on it:"
    show(parts.empty("" if live else "Nothing is held back on this node.", hint, f"surefoot silence {add}", f"surefoot maintenance {add}"))


def _over(h: HeldBack, now: datetime) -> bool:
    return h.hold.new_state == "ended" or (h.hold.ends_at is not None and h.hold.ends_at <= now)


def _held(h: HeldBack, sheet: Sheet) -> tuple[Child, ...]:
    what = "maintenance" if h.maintenance else "silence"
    return (
        what,
        "holds" if h.hold.holds(sheet.now) else f"planned from {words.clock(h.hold.starts_at, sheet.now)}",
        h.hold.matcher,
        words.when(h.hold.ends_at, sheet.now) if h.hold.ends_at else "ended by hand",
        h.hold.owner,
        h.hold.reason,
        el("code", f"surefoot {what} end {h.hold.hold}"),
    )
