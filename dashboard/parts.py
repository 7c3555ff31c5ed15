"""The pieces that pages are made of: headings, figures, badges, bars, tables, empty states. All text is escaped by `markup`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from dashboard import palette, words
from dashboard.markup import Child, Html, div, el, join, link, show, span
from dashboard.read import Sheet
from pipeline import loss
from pipeline.catalog.layers import Category
from pipeline.queries.run_checkpoints import Checkpoint
from pipeline.queries.run_states import RunState
from pipeline.records import IncidentTransition


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that matters, what it is, and what it rests on."""

    label: str
    value: str
    note: str = ""


def figures(given: Iterable[Figure]) -> Html:
    """A row of figures that wraps on a narrow screen."""
    return div("sf-figures", *(_figure(f) for f in given))


def _figure(f: Figure) -> Html:
    blank = " sf-blank" if f.value in (words.NO_DATA, "unknown") else ""
    return div(
        "sf-figure",
        div("sf-figure-label", f.label),
        div("sf-figure-value" + blank, f.value, title=f.value),
        div("sf-figure-note", f.note or "\u00a0"),
    )


def gap() -> Html:
    """A little room between two parts that are drawn together."""
    return el("div", style="height:.6rem")


def title(text: str, note: str = "") -> Html:
    """A section's heading."""
    return div("sf-title", text, el("small", note) if note else None)


def badge(text: str, mark: palette.Mark) -> Html:
    """A coloured word with its sign."""
    return span("sf-badge", f"{mark.sign} {text}", style=tone(mark.colour))


def tone(colour: str) -> str:
    """The style that gives an element its meaning's colour."""
    return f"--tone:{colour}"


def node(name: str) -> Html:
    """A node's name, which leads to its page."""
    return link("node", name, node=name)


def where(node_name: str, rank: int | None, device: str = "") -> Html:
    """A place as `words.where` says it; its node leads to the node's page."""
    said = words.where(node_name, rank, device)
    return join(said.removesuffix(node_name), node(node_name)) if node_name else join(said)


def incident_state(name: str) -> Html:
    """The state of an incident as a badge."""
    return badge(name, palette.state(name))


def run_state(name: str) -> Html:
    """The state of a run as a badge."""
    return badge({"started": "in progress"}.get(name, name), palette.state(name))


def action_state(name: str) -> Html:
    """The state of an action as a badge."""
    return badge({"waiting": "waits for approval", "dry_run": "dry run"}.get(name, name), palette.state(name))


def bar(spent: Mapping[str, float]) -> Html:
    """GPU-seconds by category as one stacked bar with its legend."""
    total = sum(spent.values())
    if total <= 0:
        return div("sf-quiet", "The ledger has no entry for this yet.")
    known = [c for c in palette.CATEGORIES if spent.get(c, 0) > 0]
    pieces = [_piece(c, spent[c], total) for c in known]
    legend = [_entry(c, spent[c], total) for c in known]
    return join(div("sf-bar", *pieces), div("sf-legend", *legend))


def _piece(name: str, seconds: float, total: float) -> Html:
    share = f"width:{100 * seconds / total:.4f}%;background:{palette.CATEGORIES[name][1]}"
    return el("i", style=share, title=f"{words.category(name)}: {words.gpu_time(seconds)}, {words.percent(seconds / total)}")


def _entry(name: str, seconds: float, total: float) -> Html:
    swatch = el("i", cls="sf-swatch", style=f"background:{palette.CATEGORIES[name][1]}")
    return span("", swatch, words.category(name), el("b", words.gpu_time(seconds)), span("sf-quiet", words.percent(seconds / total)))


def legend(colours: Mapping[str, str]) -> Html:
    """What the colours of a chart mean, in lines that wrap."""
    entries = (span("", el("i", cls="sf-swatch", style=f"background:{colour}"), words.category(name)) for name, colour in colours.items())
    return div("sf-legend sf-quiet", *entries)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    right: Collection[int] = (),
    tight: Collection[int] = (),
    wide: Collection[int] = (),
) -> Html:
    """A table: columns in `right` are numbers, those in `tight` are not broken into lines, a narrow screen leaves out those in `wide`."""
    side = [
        " ".join(name for name, given in (("sf-right", right), ("sf-tight", {*right, *tight}), ("sf-wide", wide)) if i in given)
        for i in range(len(heads))
    ]
    head = el("tr", *(el("th", h, cls=c) for h, c in zip(heads, side, strict=True)))
    body = [el("tr", *(el("td", cell, cls=c) for cell, c in zip(row, side, strict=True))) for row in rows]
    return div("sf-scroll", el("table", el("thead", head), el("tbody", *body), cls="sf-table"))


def empty(what: str, then: Child, *commands: str) -> Html:
    """Nothing here yet, and what to do about it."""
    lines = div("sf-code", *(el("div", command(c)) for c in commands)) if commands else None
    return div("sf-empty", el("b", what), div("sf-quiet", then), lines)


def command(text: str) -> Html:
    """A command line that breaks between its words only, not at the hyphens of its options."""
    return join(*(part for word in text.split() for part in (span("sf-word", word), " ")))


def missing(kind: str, name: str) -> Html:
    """The address names a run or an incident that does not exist: what to do about it."""
    ways = join(link(kind, f"All {kind}s"), " · ", link("now", "Now"))
    hint = "Check the address: it may be cut off, or from another installation. If it has only just begun, this page shows it by itself."
    return div("sf-empty", el("b", f"No {kind} is called {name}."), div("sf-quiet", hint), div("sf-ways", ways))


def tab(what: str) -> None:
    """Name the browser's tab after what the page shows."""
    st.set_page_config(page_title=f"{what} · Surefoot")


def incident_card(i: IncidentTransition, sheet: Sheet, cost: str = "") -> Html:
    """An incident in a list, with what it cost where that is known; the whole card leads to it."""
    mark = palette.severity(i.severity)
    stripe = palette.PAST if i.new_state == "resolved" else mark.colour
    began = i.onset or i.detected_at or i.at
    side = (
        f"resolved {words.ago(i.resolved_at or i.at, sheet.now)}" if i.new_state == "resolved" else f"since {words.when(began, sheet.now)}"
    )
    sub = [
        badge(i.severity, mark),
        incident_state(i.new_state),
        span("", words.where(i.node, i.rank, i.device)),
        span("", f"layer {i.layer}"),
    ]
    sub += [span("", f"run {i.run}")] if i.run else []
    sub += [span("", f"acknowledged by {i.acknowledged_by}")] if i.acknowledged_by else []
    inner = (
        div("sf-card-title", i.title),
        div("sf-card-side", side),
        div("sf-card-sub", *sub),
        div("sf-card-cost", cost) if cost else None,
    )
    return link("incident", join(*inner), "sf-card", tone(stripe), incident=i.incident)


def trouble(sheet: Sheet) -> None:
    """Say calmly that the store does not answer, where it does not."""
    if sheet.failed_since is None:
        return
    since = words.when(sheet.failed_since, sheet.now)
    seen = f"What you see was read {words.ago(sheet.read_at, sheet.now)}." if sheet.read_at else "Some of this page was never read."
    show(div("sf-banner", el("b", f"The store does not answer since {since}; retrying. "), f"{seen} ", span("sf-quiet", sheet.error)))


def foot(sheet: Sheet) -> Html:
    """When this page was read."""
    return div("sf-foot", f"Read at {words.clock(sheet.read_at, sheet.now)}. Refreshes every 2 s. All times are UTC.")


def losses(spent: Mapping[str, float]) -> dict[str, float]:
    """Of GPU-seconds by category those that incidents took."""
    return {c: s for c, s in spent.items() if palette.CATEGORIES.get(c, ("", ""))[0] == palette.INCIDENT}


def loss_sentence(spent: Mapping[str, float]) -> str:
    """What GPU-seconds by category come to, in one sentence."""
    return loss.loss_sentence({c: round(spent[c] * 1e6) for c in Category if c in spent})


def at_risk(run: RunState, checkpoint: Checkpoint | None, now: datetime) -> float | None:
    """GPU-seconds that would be lost if `run` died now, with its newest complete checkpoint; None while its ranks are not known."""
    if not run.ranks:
        return None
    return loss.work_at_risk(run.ranks, run.started_at, checkpoint.at if checkpoint else None, now)


def goodput(spent: Mapping[str, float]) -> float | None:
    """Productive over all, sum over sum; None where there is nothing to divide."""
    total = sum(spent.values())
    return spent.get(Category.PRODUCTIVE, 0.0) / total if total > 0 else None
