"""Node: how one machine is and why, what runs on it, what it read lately and over time, and what is held back on it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Final

import streamlit as st

from dashboard import charts, nodes, palette, parts, words
from dashboard.markup import Html, div, el, join, link, show, span
from dashboard.parts import Figure
from dashboard.read import REFRESH, Sheet, settings
from dashboard.views import node_tables
from pipeline.nodes import Node, NodeState
from pipeline.queries.node_disks import node_disks
from pipeline.queries.node_gpus import node_gpus
from pipeline.queries.node_history import node_history
from pipeline.queries.node_incidents import node_incidents
from pipeline.queries.node_mounts import node_mounts
from pipeline.queries.node_ranks import node_ranks
from pipeline.records import IncidentTransition, Live
from pipeline.sizes import size
from pipeline.vitals import AGENT, patience

_WINDOWS: Final = {"15 min": 15, "1 h": 60, "6 h": 360, "24 h": 1440}
_POINTS: Final = 120  # of a chart
_MOUNTS: Final = 5  # file systems in the chart
_RESOLVED: Final = 5  # incidents that are over and still shown
_LIVE: Final = 2.5  # seconds after which a rank's last word is old


def page() -> None:
    """Draw the node that the address names."""
    name = st.query_params.get("node", "").strip().lower()
    parts.tab(f"Node {name}" if name else "Node")
    if not name:
        show(parts.empty("No node is named in the address.", join("Choose one in the ", link("fleet", "fleet"), ".")))
        return
    if _find(Sheet(), name) is None:
        _missing(name)
        return
    _head(name)
    show(parts.title("Over time"))
    chosen = st.segmented_control("Window", list(_WINDOWS), default="1 h", key="window", bind="query-params", label_visibility="collapsed")
    _over_time(name, _WINDOWS[chosen or "1 h"])
    node_tables.draw(name)


def _find(sheet: Sheet, name: str) -> Node | None:
    return next((n for n in nodes.everything(sheet) if n.name == name), None)


@st.fragment(run_every=REFRESH)
def _missing(name: str) -> None:
    """Said until the node is there, or the store is."""
    sheet = Sheet()
    if _find(sheet, name):
        st.rerun()
    parts.trouble(sheet)
    if sheet.blank:
        return
    hint = "Check the name. If its agent has only just been started, this page shows it by itself. To start one there:"
    show(parts.empty(f"No node called {name} has been heard of.", hint, nodes.START))
    show(div("sf-ways", link("fleet", "All nodes"), " · ", link("now", "Now")))


@st.fragment(run_every=REFRESH)
def _head(name: str) -> None:
    sheet = Sheet()
    node = _find(sheet, name)
    incidents = sheet.rows(node_incidents, name, limit=50)
    going = sorted(r.run for r in node.runs) if node else []
    ranks = sheet.rows(node_ranks, name, going, sheet.ago(hours=1), sheet.ago(seconds=-REFRESH)) if going else []
    parts.trouble(sheet)
    if node is None or sheet.blank:
        return
    show(_title(node, sheet), parts.gap(), _figures(node, sheet))
    _incidents(sheet, incidents)
    _running(sheet, node, ranks)


def _title(node: Node, sheet: Sheet) -> Html:
    mark = palette.NODES[node.state]
    state, reason = (node.state.upper() if node.state is NodeState.OK else node.state.capitalize()), node.reason
    if sheet.failed_since:
        state, reason, mark = "Not known", "the store does not answer; what follows is what was read last", palette.NODES[NodeState.UNKNOWN]
    worst = node.incidents[0] if node.incidents and not sheet.failed_since else None
    why = f"{reason[:1].upper()}{reason[1:]}."
    head = div("sf-head", div("sf-head-line", el("h1", node.name), *nodes.held(node, sheet)))
    line = link("incident", why, "sf-status-line", incident=worst.incident) if worst else div("sf-status-line", why)
    sub = div("sf-status-sub", f"{state} · heard {nodes.heard(node, sheet)}", *_places(node))
    return join(head, parts.gap(), div("sf-status", div("sf-sign", mark.sign), div("", line, sub), style=parts.tone(mark.colour)))


def _places(node: Node) -> list[Html]:
    return [join(" · run ", link("run", r.run, run=r.run)) for r in node.runs]


def _figures(node: Node, sheet: Sheet) -> Html:
    now, shares = node.readings, f"over the last {words.span(nodes.window())}"
    absent = "no fresh reading" if now is None else "its kernel does not tell"
    waited = nodes.pressure(now)
    full = node.fullest
    ranks = sum(r.ranks for r in node.runs)
    return parts.figures(
        (
            Figure(
                "CPU busy",
                words.percent(now.cpu_busy if now else None),
                f"of {words.plural(now.cpus, 'CPU')}, {shares}" if now and now.cpus and now.cpu_busy is not None else absent,
            ),
            Figure(
                "Memory available",
                size(now.memory_available) if now and now.memory_available is not None else words.NO_DATA,
                f"of {size(now.memory_total)}" if now and now.memory_total else absent,
            ),
            Figure(
                "Pressure", words.percent(waited[1] if waited else None), f"tasks waited for {waited[0]}, {shares}" if waited else absent
            ),
            Figure(
                "Fullest file system",
                words.percent(full.used if full else None),
                full.mount_point if full else "none told of" if now else absent,
            ),
            Figure("Ranks here", str(ranks), f"of {words.plural(len(node.runs), 'run')}" if node.runs else "no run has a launcher here"),
            Figure("GPUs", str(node.gpus), "in the inventory")
            if node.gpus
            else Figure("Agent heard", words.ago(node.signs.agent_at, sheet.now), f"it reads every {settings().agent.interval:g} s"),
        )
    )


def _incidents(sheet: Sheet, incidents: Sequence[IncidentTransition]) -> None:
    still = [i for i in incidents if i.new_state != "resolved"]
    over = [i for i in incidents if i.new_state == "resolved"]
    shown = [*still, *over[:_RESOLVED]]
    note = f"{len(still)} open, {'50 or more' if len(incidents) == 50 else len(over)} resolved" if incidents else ""
    show(parts.title("Incidents", note), parts.gap())
    if not shown:
        show(div("sf-box sf-quiet", "No incident was ever opened about this node."))
        return
    show(div("sf-cards", *(parts.incident_card(i, sheet) for i in shown)))


_RANK_HEADS: Final = ("run", "rank", "attempt", "step", "phase", "in it for", "process", "heard")


def _running(sheet: Sheet, node: Node, ranks: Sequence[Live]) -> None:
    attempts = {r.run: r.attempt for r in node.runs}
    current = [r for r in ranks if f"{r.attempt}.".startswith(f"{attempts[r.run]}.")]  # with torchrun's own restarts
    show(parts.title("Runs on it now", words.plural(len(current), "rank") if current else ""))
    if not node.runs:
        show(div("sf-box sf-quiet", "No run in progress has a launcher here."))
        return
    if not current:
        told = [div("", run) for run in nodes.runs(node)]
        show(div("sf-box", *told, div("sf-quiet sf-small", "What their ranks do is not known: they have no StepMonitor, or just begin.")))
        return
    show(parts.gap(), parts.table(_RANK_HEADS, [_rank(r, sheet) for r in current], right=(1, 3, 5), tight=(0, 7), wide=(2, 5, 6)))


def _rank(r: Live, sheet: Sheet) -> tuple[Html | str, ...]:
    stale = (sheet.now - r.at).total_seconds() > _LIVE
    phase = r.phase or "between phases"
    return (
        link("run", r.run, run=r.run),
        str(r.rank),
        r.attempt,
        "-" if r.step is None else f"{r.step:,}",
        f"{phase}: {r.collective}" if r.collective else phase,
        "-" if stale else words.duration(words.between(r.since, r.at)),
        words.process(r.process_state),
        span("sf-stale", f"unknown: heard {words.ago(r.at, sheet.now)}") if stale else words.ago(r.at, sheet.now),
    )


# --- over time -------------------------------------------------------------------------------


@st.fragment(run_every=REFRESH)
def _over_time(name: str, minutes: int) -> None:
    """Charts of what matters, over `minutes` up to now. The axis moves a slot at a time, so that charts are not built anew each time."""
    sheet = Sheet()
    interval = settings().agent.interval
    width = max(ceil(minutes * 60 / _POINTS), ceil(2 * interval))
    until = _slot(sheet.ago(), width) + timedelta(seconds=width)
    since = until - timedelta(seconds=ceil(minutes * 60 / width) * width)
    gap = max(patience(AGENT, settings()), float(width))
    hosts = sheet.rows(node_history, name, since, until, width=width, gap=gap)
    mounts = sheet.rows(node_mounts, name, since, until, width=width, limit=_MOUNTS)
    disks = sheet.rows(node_disks, name, since, until, width=width, gap=gap)
    gpus = sheet.rows(node_gpus, name, since, until, width=width)
    if sheet.blank:
        return
    if not hosts:
        show(parts.empty("Its agent sent nothing in this window.", "Choose a longer window."))
        return
    drawn = (
        (
            "GPUs: share of the time busy, and of memory used",
            {
                "busiest": [(g.at, g.busiest) for g in gpus],
                "idlest": [(g.at, g.idlest) for g in gpus],
                "fullest memory": [(g.at, g.fullest) for g in gpus],
            },
            charts.SHARE,
        ),
        (
            "Processors",
            {"busy": [(h.at, h.cpu_busy) for h in hosts], "waiting for I/O": [(h.at, h.cpu_iowait) for h in hosts]},
            charts.SHARE,
        ),
        (
            "Pressure: share of the time in which a task waited",
            {
                "for a CPU": [(h.at, h.cpu_pressure) for h in hosts],
                "for memory": [(h.at, h.memory_pressure) for h in hosts],
                "for I/O": [(h.at, h.io_pressure) for h in hosts],
            },
            charts.SHARE,
        ),
        ("Memory", {"used": [(h.at, h.memory_used) for h in hosts], "/dev/shm used": [(h.at, h.shm_used) for h in hosts]}, charts.SHARE),
        (
            "File systems used",
            {m: [(s.at, s.used) for s in mounts if s.mount_point == m] for m in sorted({s.mount_point for s in mounts})},
            charts.SHARE,
        ),
        ("Disks: bytes a second", {"read": [(d.at, d.read) for d in disks], "written": [(d.at, d.written) for d in disks]}, charts.BYTES),
    )
    shown = [(title, lines, kind) for title, lines, kind in drawn if any(v is not None for line in lines.values() for _, v in line)]
    with st.container(key="node_charts"):
        for pair in zip(shown[::2], [*shown[1::2], None], strict=False):
            for column, one in zip(st.columns(2, gap="medium"), pair, strict=True):
                if one:
                    with column:
                        _chart(*one, since, until, width)


def _chart(title: str, lines: charts.Lines, kind: charts.Axis, since: datetime, until: datetime, width: int) -> None:
    colours = charts.line_colours(lines)
    entries = (span("", el("i", cls="sf-swatch", style=f"background:{colour}"), name) for name, colour in colours.items())
    show(div("sf-small", el("b", title)), div("sf-legend sf-quiet", *entries))
    st.altair_chart(charts.over_time(lines, kind, since, until, width), alt=f"{title} over time")


def _slot(at: datetime, width: int) -> datetime:
    """The beginning of the slot that `at` lies in, as the store counts them."""
    return datetime.fromtimestamp(int(at.timestamp()) // width * width, at.tzinfo)
