"""Figures from the ledger and from incidents. Pure. A ratio is a sum over a sum; of nothing there is no figure, but None."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from statistics import mean, median

from pipeline.catalog.layers import Category
from pipeline.clock import to_micros
from pipeline.queries.repairs import Repair
from pipeline.records import LedgerEntry

INCIDENT_PARTS = (Category.DETECT, Category.LOCATE, Category.ACT, Category.RESTART, Category.LOST_PROGRESS)


def spent(entries: Iterable[LedgerEntry], start: datetime | None = None, end: datetime | None = None) -> dict[Category, int]:
    """GPU-microseconds by category within [start, end), in the catalogue's order; categories without any are left out."""
    sums = dict.fromkeys(Category, 0)
    for entry in entries:
        low = entry.started_at if start is None else max(entry.started_at, start)
        high = entry.ended_at if end is None else min(entry.ended_at, end)
        if low < high:
            sums[Category(entry.category)] += to_micros(high) - to_micros(low)
    return {category: micros for category, micros in sums.items() if micros}


def goodput(entries: Iterable[LedgerEntry], start: datetime | None = None, end: datetime | None = None) -> float | None:
    """Productive GPU-time over all GPU-time within [start, end), 0 to 1; None where there is none."""
    return productive_share(spent(entries, start, end))


def productive_share(sums: Mapping[Category, float]) -> float | None:
    """Goodput of sums by category, in any unit of GPU-time; None where they come to nothing."""
    total = sum(sums.values())
    return sums.get(Category.PRODUCTIVE, 0) / total if total else None


def incident_costs(entries: Iterable[LedgerEntry]) -> dict[str, dict[Category, int]]:
    """What each incident cost, in GPU-microseconds by part (detect, locate, act, restart, lost progress)."""
    costs: dict[str, dict[Category, int]] = {}
    for entry in entries:
        if entry.incident:
            parts = costs.setdefault(entry.incident, dict.fromkeys(INCIDENT_PARTS, 0))
            parts[Category(entry.category)] += to_micros(entry.ended_at) - to_micros(entry.started_at)
    return costs


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds: mean, median and 90th percentile (nearest rank) of `count` of them."""

    count: int
    mean: float
    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class Mttr:
    """Times to repair. `resolve`, `recover` and `catch_up` count from the onset; None where no incident has that time.

    `open` are those not resolved by the window's end, which enter no average.
    """

    resolve: Spread | None
    recover: Spread | None
    catch_up: Spread | None
    open: tuple[str, ...]


def mttr(repairs: Sequence[Repair], start: datetime, end: datetime) -> Mttr:
    """Over incidents resolved in [start, end), each with its full length, also where it began before `start`."""
    done = [r for r in repairs if r.resolved is not None and start <= r.resolved < end]
    still = tuple(r.incident for r in repairs if r.onset < end and (r.resolved is None or r.resolved >= end))
    return Mttr(
        resolve=_spread([(r.resolved - r.onset).total_seconds() for r in done if r.resolved]),
        recover=_spread([(r.recovered - r.onset).total_seconds() for r in done if r.recovered]),
        catch_up=_spread([(r.caught_up - r.onset).total_seconds() for r in done if r.caught_up]),
        open=still,
    )


def _spread(seconds: Sequence[float]) -> Spread | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return Spread(len(ordered), mean(ordered), median(ordered), ordered[ceil(0.9 * len(ordered)) - 1])
