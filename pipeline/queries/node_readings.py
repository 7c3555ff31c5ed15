"""The last readings of everything on one node, of every family that the catalogue has."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, Final

from pipeline.catalog.metrics import FAMILIES, Family, Kind
from pipeline.queries import sql
from pipeline.store import Store

_PASSES: Final = 60  # of each device that are looked at
_RATE: Final = timedelta(seconds=60)  # over which a counter's rate is taken: two readings at least


@dataclass(frozen=True, slots=True)
class LastValue:
    """A metric's last value that was no NULL, and when it was read; of a counter its increase a second, None where that is not known."""

    value: float
    at: datetime
    a_second: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceNow:
    """A device as it was last read, at `at`. `values` are by metric name; what was never read is not in it."""

    family: str
    name: str
    attrs: Mapping[str, str]
    at: datetime
    values: Mapping[str, LastValue]


def node_readings(store: Store, node: str, since: datetime, until: datetime) -> list[DeviceNow]:
    """The devices of `node` that were read after `since`, up to `until`, by family and name."""
    given = {"node": node, "since": since, "until": until, "passes": _PASSES}
    return [
        _device(family, list(rows))
        for family in FAMILIES
        for _, rows in groupby(store.query(sql("node_readings"), {**given, "family": family.name}), key=lambda r: r["device_id"])
    ]


def _device(family: Family, rows: Sequence[Mapping[str, Any]]) -> DeviceNow:
    told = [(row["ts"], _values(row["readings"])) for row in rows]
    values = {}
    for i, metric in enumerate(family.metrics):
        series = [(at, float(value)) for at, given in told if (value := given[i]) is not None]
        if series:
            at, value = series[-1]
            values[metric.name] = LastValue(value, at, a_second(series) if metric.kind is Kind.COUNTER else None)
    return DeviceNow(family.name, rows[0]["name"], rows[0]["attrs"], rows[-1]["ts"], values)


def a_second(series: Sequence[tuple[datetime, float]]) -> float | None:
    """How fast a counter grew over its last minute (oldest first); None where it began anew, or was read only once."""
    last_at, last = series[-1]
    near = [(at, value) for at, value in series[:-1] if last_at - at <= _RATE] or list(series[-2:-1])
    if not near or _falls(value for _, value in (*near, series[-1])):
        return None
    at, first = near[0]
    seconds = (last_at - at).total_seconds()
    return (last - first) / seconds if seconds > 0 else None


def _falls(values: Iterable[float]) -> bool:
    given = list(values)
    return any(after < before for before, after in pairwise(given))


def _values(readings: str) -> list[float | None]:
    told = json.loads(readings)
    return list(told.values()) if isinstance(told, dict) else told  # some servers name a tuple's parts
