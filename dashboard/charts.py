"""The charts, as Altair specifications from rows that are already few enough to draw. Colours are the palette's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import altair as alt
import pyarrow as pa

from dashboard import palette
from pipeline.clock import to_micros
from pipeline.queries.run_losses import LossPoint
from pipeline.queries.run_phases import PhasePoint
from pipeline.queries.run_steps import StepPoint
from pipeline.queries.spending_over_time import Slice

Drawn = Any  # altair says nothing exact about what its methods give

HEIGHT = 260
_EDGE = 8  # pixels free at the right: a label that stands out by more is left out, as it would be cut
_PADDING = {"left": 0, "right": _EDGE, "top": 0, "bottom": 0}
_STEP = alt.X(
    "step:Q",
    title="step",
    axis=alt.Axis(format=",d", tickMinStep=1, tickCount=8, grid=False, labelFlush=False, labelBound=_EDGE),
    scale=alt.Scale(nice=False, zero=False),
)


def goodput(slices: Sequence[Slice], width: int, since: datetime, until: datetime) -> Drawn:
    """Where the GPU time went between `since` and `until`, by slices of `width` seconds, as shares; the blue part is goodput.

    Both times stand on the slices' grid: an axis that moved with every drawing would have to be built anew each time.
    """
    span = timedelta(seconds=width)
    hour = alt.Scale(type="utc", domain=[to_micros(since) // 1000, to_micros(until) // 1000])
    clock = "%H:%M" if until - since > timedelta(minutes=10) else "%H:%M:%S"
    rows = [{"at": at, "end": at + span, "group": g, "low": low, "high": high, "gpu_seconds": v} for at, g, low, high, v in _shares(slices)]
    return (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_rect(stroke=None, clip=True)
        .encode(
            x=alt.X(
                "at:T", title=None, scale=hour, axis=alt.Axis(format=clock, grid=False, tickCount=8, labelFlush=False, labelBound=_EDGE)
            ),
            x2="end:T",
            y=alt.Y("low:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])),
            y2="high:Q",
            color=_colours("group", palette.GROUPS),
            tooltip=[
                alt.Tooltip("at:T", title="from", format="%H:%M:%S UTC", timeUnit="utcyearmonthdatehoursminutesseconds"),
                alt.Tooltip("group:N", title="went to"),
                alt.Tooltip("gpu_seconds:Q", title="GPU-seconds", format=",.1f"),
            ],
        )
        .properties(height=HEIGHT, padding=_PADDING)
    )


def _shares(slices: Sequence[Slice]) -> Iterator[tuple[datetime, str, float, float, float]]:
    """(at, group, from share, to share, GPU-seconds), stacked in the order of the groups."""
    sums: dict[datetime, dict[str, float]] = {}
    for s in slices:
        group = palette.CATEGORIES.get(s.category, (palette.BLIND, ""))[0]
        inside = sums.setdefault(s.at, {})
        inside[group] = inside.get(group, 0.0) + s.gpu_seconds
    for at, inside in sums.items():
        total, low = sum(inside.values()), 0.0
        for group in palette.GROUPS:
            if seconds := inside.get(group, 0.0):
                yield at, group, low, low + seconds / total, seconds
                low += seconds / total


def rank_colours(points: Sequence[StepPoint]) -> dict[str, str]:
    """The colour of each rank's line."""
    ranks = sorted({p.rank for p in points})
    return {f"rank {r}": palette.RANKS[i % len(palette.RANKS)] for i, r in enumerate(ranks)}


def step_times(points: Sequence[StepPoint]) -> Drawn:
    """Step time by rank; a dashed line where an attempt begins."""
    rows = [{"step": p.step, "seconds": p.seconds, "longest": p.longest, "who": f"rank {p.rank}", "attempt": p.attempt} for p in points]
    lines = (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_line(strokeWidth=1.4, interpolate="linear", point=len(points) < 12)
        .encode(
            x=_STEP,
            y=alt.Y("seconds:Q", title="seconds a step", axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=True)),
            color=_colours("who", rank_colours(points)),
            detail="attempt:N",
            tooltip=[
                alt.Tooltip("who:N", title="rank"),
                alt.Tooltip("step:Q", title="step"),
                alt.Tooltip("seconds:Q", title="mean, s", format=".3f"),
                alt.Tooltip("longest:Q", title="longest, s", format=".3f"),
                alt.Tooltip("attempt:N", title="attempt"),
            ],
        )
    )
    return alt.layer(lines, _beginnings({p.attempt: p.step for p in reversed(points)})).properties(height=HEIGHT, padding=_PADDING)


def losses(points: Sequence[LossPoint]) -> Drawn:
    """The loss over steps; a later attempt is drawn over the steps that it repeats."""
    rows = [{"step": p.step, "loss": p.loss, "attempt": p.attempt} for p in points if p.loss is not None]
    lines = (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_line(strokeWidth=1.8, color=palette.RANKS[0], point=len(points) < 12)
        .encode(
            x=_STEP,
            y=alt.Y("loss:Q", title="loss", axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=False)),
            detail="attempt:N",
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("loss:Q", format=".6f"), alt.Tooltip("attempt:N")],
        )
    )
    return alt.layer(lines, _beginnings({p.attempt: p.step for p in reversed(points)})).properties(height=HEIGHT, padding=_PADDING)


def phase_colours(points: Sequence[PhasePoint]) -> dict[str, str]:
    """The colour of each phase that occurs."""
    seen = {p.phase for p in points}
    return {name: colour for name, colour in palette.PHASES.items() if name in seen}


def phases(points: Sequence[PhasePoint]) -> Drawn:
    """What steps consist of, stacked, in seconds."""
    colours = phase_colours(points)
    order = list(colours)
    rows = [{"step": p.step, "phase": p.phase, "seconds": p.seconds, "order": order.index(p.phase)} for p in points]
    return (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_area(interpolate="step-after", opacity=0.92)
        .encode(
            x=_STEP,
            y=alt.Y("seconds:Q", stack="zero", title="seconds a step", axis=alt.Axis(tickCount=4)),
            color=_colours("phase", colours),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("phase:N"), alt.Tooltip("seconds:Q", format=".3f")],
        )
        .properties(height=HEIGHT, padding=_PADDING)
    )


Lines = Mapping[str, Sequence[tuple[datetime, float | None]]]
"""Of each line its points, by its name."""


@dataclass(frozen=True, slots=True)
class Axis:
    """How values are written, and between which they lie at most (None: no bound)."""

    format: str
    high: float | None


SHARE: Final = Axis(".0%", 1.0)
BYTES: Final = Axis(".2s", None)
_SMALL: Final = 150


def line_colours(lines: Lines) -> dict[str, str]:
    """The colour of each line."""
    return {name: palette.RANKS[i % len(palette.RANKS)] for i, name in enumerate(lines)}


def over_time(lines: Lines, axis: Axis, since: datetime, until: datetime, width: int) -> Drawn:
    """Lines over the time from `since` to `until`, in slots of `width` seconds; a slot without a value breaks its line."""
    slots = [since.astimezone(UTC) + timedelta(seconds=s) for s in range(0, int((until - since).total_seconds()) + 1, width)]
    told = {(name, at.astimezone(UTC)): value for name, line in lines.items() for at, value in line}
    rows = [{"at": at, "value": told.get((name, at)), "what": name} for name in lines for at in slots]
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("value", pa.float64()), ("what", pa.string())])
    hour = alt.Scale(type="utc", domain=[since.isoformat(), until.isoformat()])  # of numbers Vega-Lite makes no domain for lines
    high = alt.Scale(zero=True) if axis.high is None else alt.Scale(domain=[0, axis.high])
    return (
        alt.Chart(pa.Table.from_pylist(rows, schema=schema))
        .mark_line(strokeWidth=1.6, interpolate="linear", clip=True, point=sum(v is not None for v in told.values()) < 12)
        .encode(
            x=alt.X(
                "at:T", title=None, scale=hour, axis=alt.Axis(format="%H:%M", grid=False, tickCount=6, labelFlush=False, labelBound=_EDGE)
            ),
            y=alt.Y("value:Q", title=None, scale=high, axis=alt.Axis(format=axis.format, tickCount=4)),
            color=_colours("what", line_colours(lines)),
            tooltip=[
                alt.Tooltip("at:T", title="from", format="%H:%M:%S UTC", timeUnit="utcyearmonthdatehoursminutesseconds"),
                alt.Tooltip("what:N", title="what"),
                alt.Tooltip("value:Q", title="value", format=axis.format),
            ],
        )
        .properties(height=_SMALL, padding=_PADDING)
    )


def _colours(field: str, colours: dict[str, str]) -> alt.Color:
    """Without a legend of the chart's own, which a narrow screen cuts off: `parts.legend` stands above it."""
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None)


def _beginnings(first_step: dict[str, int]) -> Drawn:
    """Rules where the second and later attempts begin (attempts in the order of their steps)."""
    first = min(first_step.values(), default=0)
    rows = [{"step": step, "attempt": attempt} for attempt, step in first_step.items() if step != first]
    schema = pa.schema([("step", pa.int64()), ("attempt", pa.string())])
    rules = alt.Chart(pa.Table.from_pylist(rows, schema=schema)).mark_rule(strokeDash=[4, 4], color=palette.UNKNOWN_COLOUR)
    return rules.encode(x="step:Q", tooltip=[alt.Tooltip("attempt:N", title="begins"), alt.Tooltip("step:Q")])
