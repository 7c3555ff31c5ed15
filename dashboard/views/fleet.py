"""Fleet: every node that was heard of, the worst first: which are well, what is wrong with the others, what runs where."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import streamlit as st

from dashboard import nodes, palette, parts, words
from dashboard.markup import Child, Html, div, el, join, link, show, span
from dashboard.read import REFRESH, Sheet
from pipeline.nodes import Node, NodeState, counts
from pipeline.sizes import size

_ALL: Final = "all"
_STATES: Final = [_ALL, *(str(state) for state in NodeState)]
_LISTED: Final = 100  # rows of the table; the map shows all
_MAP_FROM: Final = 13  # nodes, from which a map tells more than the table alone
_NAMED_UP_TO: Final = 120  # nodes, up to which their names fit into the map
_FINE_FROM: Final = 600  # nodes, from which the squares are small: what is wrong shall stand on the same screen
_TITLES: Final = 2  # incidents of a node that are named

_MEANING: Final[Mapping[NodeState, str]] = {
    NodeState.FAILED: "an incident hurts work there",
    NodeState.UNKNOWN: "nothing is heard: never taken for ok",
    NodeState.LOST: "agent silent, launcher speaks",
    NodeState.DEGRADED: "a warning; work goes on",
    NodeState.OK: "heard, no incident",
    NodeState.GONE: "not heard for over a day",
}


def page() -> None:
    """Draw the page; what it shows draws itself again every two seconds."""
    parts.tab("Fleet")
    _summary()
    with st.container(horizontal=True, vertical_alignment="center", key="fleet_filter"):
        chosen = st.segmented_control("State", _STATES, default=_ALL, key="state", bind="query-params", label_visibility="collapsed")
        search = st.text_input(
            "Name", key="search", placeholder="find a node by its name", bind="query-params", width=260, label_visibility="collapsed"
        )
    _nodes(chosen or _ALL, search.strip().lower())


@st.fragment(run_every=REFRESH)
def _summary() -> None:
    sheet = Sheet()
    found = nodes.everything(sheet)
    parts.trouble(sheet)
    if found:
        show(_status(found, sheet), parts.gap(), _counts(counts(found)))


def _status(found: Sequence[Node], sheet: Sheet) -> Html:
    worst = found[0]
    same = sum(1 for n in found if n.state is worst.state)
    here = [n for n in found if n.state is not NodeState.GONE]
    if sheet.failed_since:
        line, sub, mark = "Not known: the store does not answer.", "What follows is what was read last.", palette.NODES[NodeState.UNKNOWN]
    elif worst.state is NodeState.OK:
        line, mark = f"All is well on {words.plural(len(here), 'node')}.", palette.NODES[NodeState.OK]
        sub = "No incident is open on a node, and every agent is heard."
    else:
        mark = palette.NODES[worst.state]
        line = f"{same:,} of {words.plural(len(found), 'node')} {_VERBS[worst.state]}"
        others = sum(1 for n in here if n.state not in (worst.state, NodeState.OK))
        sub = f"{worst.name}: {worst.reason}." + (f" {words.plural(others, 'other node')} not ok." if others else "")
    head = link("node", line, "sf-status-line", node=worst.name) if worst.state is not NodeState.OK else div("sf-status-line", line)
    return div("sf-status", div("sf-sign", mark.sign), div("", head, div("sf-status-sub", sub)), style=parts.tone(mark.colour))


_VERBS: Final[Mapping[NodeState, str]] = {
    NodeState.FAILED: "failed",
    NodeState.UNKNOWN: "unknown: nothing is heard from there",
    NodeState.LOST: "without telemetry",
    NodeState.DEGRADED: "degraded",
    NodeState.GONE: "gone: not heard for over a day",
}


def _counts(of: Mapping[NodeState, int]) -> Html:
    shown = [(state, count) for state, count in of.items() if count or state is not NodeState.GONE]
    return div("sf-figures sf-counts", *(_count(state, count) for state, count in shown))


def _count(state: NodeState, count: int) -> Html:
    mark = palette.NODES[state]
    return div(
        "sf-figure sf-count" if count else "sf-figure sf-count sf-none",
        div("sf-figure-label", el("b", mark.sign), f" {state}"),
        div("sf-figure-value", f"{count:,}"),
        div("sf-figure-note", _MEANING[state]),
        style=parts.tone(mark.colour),
    )


@st.fragment(run_every=REFRESH)
def _nodes(state: str, search: str) -> None:
    sheet = Sheet()
    found = nodes.everything(sheet)
    if sheet.blank:
        return
    if not found:
        show(_nothing_yet())
        return
    some = [n for n in found if state in (_ALL, n.state) and search in n.name]
    if not some:
        show(parts.empty("No node is like that.", join("Choose another state or name, or see ", link("fleet", "all nodes"), ".")))
        return
    if len(some) >= _MAP_FROM:
        note = "each square is a node; point at it for its name" if len(some) > _NAMED_UP_TO else "worst first"
        show(parts.title("Map", note), parts.gap(), _map(some))
    over = f"shares of time are those of the last {words.span(nodes.window())}"
    show(parts.title("Nodes", f"worst first; {over}"), parts.gap(), _table(some[:_LISTED], sheet))
    if len(some) > _LISTED:
        show(div("sf-foot", f"The first {_LISTED} of {len(some):,}. The map shows them all; the filter and the search find the others."))
    show(parts.foot(sheet))


def _nothing_yet() -> Html:
    return parts.empty(
        "No node has been heard of yet.",
        "Start the agent on each node, with the address and the token of ingest; on this machine surefoot up starts all of it:",
        nodes.START,
        "surefoot up",
    )


def _map(found: Sequence[Node]) -> Html:
    """All nodes as squares, by state. Nothing in it grows older, so that it is sent again only when something changed."""
    by_state: dict[NodeState, list[Node]] = {}
    for n in found:
        by_state.setdefault(n.state, []).append(n)
    named = len(found) <= _NAMED_UP_TO
    cells = "sf-named" if named else "sf-squares sf-fine" if len(found) > _FINE_FROM else "sf-squares"
    return div("sf-map", *(_group(state, some, cells, named=named) for state, some in by_state.items()))


def _group(state: NodeState, some: Sequence[Node], cells: str, *, named: bool) -> Html:
    mark = palette.NODES[state]
    calm = " sf-calm" if state in (NodeState.OK, NodeState.GONE) else ""
    return div(
        "sf-group",
        div("sf-group-head", el("b", f"{mark.sign} {state}"), span("sf-quiet", f" {len(some):,}")),
        div(f"{cells}{calm}", *(link("node", n.name, node=n.name) if named else _square(n) for n in some)),
        style=parts.tone(mark.colour),
    )


def _square(n: Node) -> Html:
    trouble = n.incidents[0].title if n.incidents else str(n.state)
    return el("a", href=f"node?{urlencode({'node': n.name})}", title=f"{n.name}: {trouble}")


def _table(some: Sequence[Node], sheet: Sheet) -> Html:
    gpus = any(n.gpus for n in some)
    heads = ["node", "state", "what is wrong", "runs", "CPU busy", "memory available", "pressure", "fullest file system"]
    heads += ["GPUs"] if gpus else []
    rows = [[*_row(n, sheet), *([f"{n.gpus}" if n.gpus else "-"] if gpus else [])] for n in some]
    return parts.table(heads, rows, right=(4, 5, 6, 7, 8), tight=(0, 1, 3), wide=(4, 5, 6, 7, 8))


def _row(n: Node, sheet: Sheet) -> tuple[Child, ...]:
    now = n.readings
    waited = nodes.pressure(now)
    available, total = (now.memory_available, now.memory_total) if now else (None, None)
    return (
        _two(parts.node(n.name), f"heard {nodes.heard(n, sheet)}"),
        join(nodes.state(n), *(div("sf-small", chip) for chip in nodes.held(n, sheet))),
        _wrong(n),
        join(*(_two(link("run", r.run, run=r.run), words.plural(r.ranks, "rank")) for r in n.runs)) if n.runs else span("sf-quiet", "none"),
        words.percent(now.cpu_busy) if now and now.cpu_busy is not None else "-",
        _two(size(available), f"of {size(total)}" if total else "") if available is not None else "-",
        _two(words.percent(waited[1]), f"for {waited[0]}") if waited else "-",
        _two(words.percent(n.fullest.used), n.fullest.mount_point) if n.fullest else "-",
    )


def _two(line: Child, small: str) -> Html:
    """A line, and a quiet one below."""
    return join(line, div("sf-quiet sf-small", small))


def _wrong(n: Node) -> Html:
    if not n.incidents:
        return span("sf-quiet", "-") if n.state is NodeState.OK else join(n.reason)
    told = [div("", link("incident", i.title, incident=i.incident)) for i in n.incidents[:_TITLES]]
    more = len(n.incidents) - _TITLES
    silent = div("sf-quiet sf-small", n.reason.rpartition("; ")[2]) if n.state is NodeState.UNKNOWN else None
    return join(*told, div("sf-quiet sf-small", link("node", f"and {more} more", node=n.name)) if more > 0 else None, silent)
