"""Readings checked against the catalogue, and written as Prometheus text. Pure."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from exporters.collector import Reading
from exporters.labels import clean, label_name
from pipeline.catalog.metrics import ColumnType, Family, Kind, Metric

PREFIX: Final = "surefoot_"
_SUFFIXES: Final = {
    **{"By": "_bytes", "s": "_seconds", "Hz": "_hertz", "W": "_watts", "J": "_joules", "Cel": "_celsius", "1": ""},
    "By/s": "_bytes_per_second",
}
_BITS: Final = {ColumnType.U8: 8, ColumnType.U32: 32, ColumnType.U64: 63}  # 63: OTLP's integers are signed

Labels = tuple[tuple[str, str], ...]


class Accepted(NamedTuple):
    """A reading whose labels are safe and whose values are all believed. `since_ns` is 0 where it is not known."""

    family: Family
    labels: Labels
    values: tuple[tuple[Metric, float | int], ...]
    since_ns: int


class _Check(NamedTuple):
    """What of a metric's values is believed: those from `low` to `high`, whole ones where it is `whole`."""

    metric: Metric
    low: float
    high: float
    whole: bool


def accept(readings: Iterable[Reading]) -> tuple[list[Accepted], int]:
    """The readings fit to be sent, absent values left out; and how many values were rejected.

    Rejected are values beyond the metric's range, of the wrong type or not of the family, and all of a
    second reading of one device.
    """
    found: dict[tuple[str, str], Accepted] = {}
    rejected = 0
    for reading in readings:
        family, given = reading.family, reading.values
        labels, own = _labels(reading)
        device = (family.name, own)
        if not labels or device in found:
            rejected += sum(value is not None for value in given.values())
            continue
        values, refused = _values(family, given)
        rejected += refused
        found[device] = Accepted(family, labels, values, round(reading.since * 1e9) if reading.since else 0)
    return list(found.values()), rejected


def _values(family: Family, given: Mapping[str, float | int | None]) -> tuple[tuple[tuple[Metric, float | int], ...], int]:
    """The believed values of `given`, in the family's order and the metrics' own types; and how many others there are."""
    values: list[tuple[Metric, float | int]] = []
    refused = known = 0
    for name, (metric, low, high, whole) in _checks(family).items():
        if name not in given:
            continue
        known += 1
        value = given[name]
        if value is None:
            continue
        if not low <= value <= high:  # nor is what is no number
            refused += 1
        elif not whole:
            values.append((metric, float(value)))
        elif type(value) is int:
            values.append((metric, value))
        elif value == int(value):
            values.append((metric, int(value)))
        else:
            refused += 1
    if known < len(given):
        refused += sum(value is not None for name, value in given.items() if name not in _checks(family))
    return tuple(values), refused


def prometheus_name(metric: Metric) -> str:
    """The metric's name on a Prometheus page: base unit and `_total` appended. `_count` is kept for histograms there: a count of
    things is in the plural."""
    name = metric.name.replace(".", "_")
    if metric.kind is Kind.GAUGE and name.endswith("_count"):
        name = name.removesuffix("_count") + "s"
    return PREFIX + name + _SUFFIXES[metric.unit] + ("_total" if metric.kind is Kind.COUNTER else "")


def prometheus_text(readings: Sequence[Accepted]) -> str:
    """The readings in exposition format 0.0.4. All readings of one family must be in one call."""
    rows: dict[str, tuple[str, list[str]]] = {}
    for reading in readings:
        labels = _rendered(reading.labels)
        for metric, value in reading.values:
            row = rows.get(metric.name)
            if row is None:
                name, head = _head(metric)
                row = rows[metric.name] = (name, [head])
            row[1].append(f"{row[0]}{labels} {value!r}\n")
    return "".join(["".join(lines) for _, lines in rows.values()])


@lru_cache(maxsize=2048)
def _head(metric: Metric) -> tuple[str, str]:
    """Its Prometheus name, and the two lines that go before its first value."""
    name = prometheus_name(metric)
    return name, f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"


@lru_cache(maxsize=8192)
def _rendered(labels: Labels) -> str:
    return "{" + ",".join([f'{key}="{_quoted(value)}"' for key, value in labels]) + "}"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def _labels(reading: Reading) -> tuple[Labels, str]:
    """Identity first, in the family's order, then the rest; and what tells the device from the family's others. Empty where the
    identity is incomplete."""
    names, identity = reading.family.identity, reading.identity
    try:
        own = tuple([identity[name] for name in names])
    except KeyError:
        return (), ""
    return _cleaned(names, own, tuple(reading.attributes.items()))


@lru_cache(maxsize=8192)
def _cleaned(names: tuple[str, ...], identity: tuple[str, ...], attributes: Labels) -> tuple[Labels, str]:
    """No name comes twice: one such line would cost the whole page."""
    labels = {name: clean(value) for name, value in zip(names, identity, strict=True)}
    own = "\n".join(labels.values())  # which none of them holds
    for name, value in attributes:
        labels.setdefault(label_name(name), clean(value))
    return tuple(labels.items()), own


_CHECKS: Final[dict[str, tuple[Family, Mapping[str, _Check]]]] = {}


def _checks(family: Family) -> Mapping[str, _Check]:
    """The family's checks by metric; made once, and found without looking at all its metrics, as an lru_cache would."""
    kept = _CHECKS.get(family.name)
    if kept is None or kept[0] is not family:
        kept = _CHECKS[family.name] = (family, {metric.name: _check(metric) for metric in family.metrics})
    return kept[1]


def _check(metric: Metric) -> _Check:
    whole = metric.type is not ColumnType.F64
    least, most = (0, (1 << _BITS[metric.type]) - 1) if whole else (-sys.float_info.max, sys.float_info.max)
    low = least if metric.low is None else max(least, metric.low)
    return _Check(metric, low, most if metric.high is None else min(most, metric.high), whole)
