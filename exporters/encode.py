"""Readings checked against the catalogue, and written as Prometheus text. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from exporters.collector import Reading
from exporters.labels import clean, label_name
from pipeline.catalog.metrics import ColumnType, Family, Kind, Metric

PREFIX: Final = "surefoot_"
_SUFFIXES: Final = {"By": "_bytes", "s": "_seconds", "Hz": "_hertz", "W": "_watts", "J": "_joules", "Cel": "_celsius", "1": ""}
_BITS: Final = {ColumnType.U8: 8, ColumnType.U32: 32, ColumnType.U64: 63}  # 63: OTLP's integers are signed

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A reading whose labels are safe and whose values are all believed. `since_ns` is 0 where it is not known."""

    family: Family
    labels: Labels
    values: tuple[tuple[Metric, float | int], ...]
    since_ns: int


def accept(readings: Iterable[Reading]) -> tuple[list[Accepted], int]:
    """The readings fit to be sent, absent values left out; and how many values were rejected.

    Rejected are values beyond the metric's range, of the wrong type or not of the family, and all of a
    second reading of one device.
    """
    found: dict[tuple[str, Labels], Accepted] = {}
    rejected = 0
    for reading in readings:
        metrics = _metrics(reading.family)
        present = {name: value for name, value in reading.values.items() if value is not None}
        checked = ((metric, _believed(metric, present[name])) for name, metric in metrics.items() if name in present)
        values = tuple((metric, value) for metric, value in checked if value is not None)
        labels = _labels(reading)
        if labels is None or (reading.family.name, labels[: len(reading.family.identity)]) in found:
            rejected += len(present)
            continue
        since = round(reading.since * 1e9) if reading.since else 0
        found[reading.family.name, labels[: len(reading.family.identity)]] = Accepted(reading.family, labels, values, since)
        rejected += len(present) - len(values)
    return list(found.values()), rejected


def prometheus_name(metric: Metric) -> str:
    """The metric's name on a Prometheus page: base unit and `_total` appended. `_count` is kept for histograms there: a count of
    things is in the plural."""
    name = metric.name.replace(".", "_")
    if metric.kind is Kind.GAUGE and name.endswith("_count"):
        name = name.removesuffix("_count") + "s"
    return PREFIX + name + _SUFFIXES[metric.unit] + ("_total" if metric.kind is Kind.COUNTER else "")


def prometheus_text(readings: Sequence[Accepted]) -> str:
    """The readings in exposition format 0.0.4. All readings of one family must be in one call."""
    rows: dict[str, list[str]] = {}
    heads: dict[str, Metric] = {}
    for reading in readings:
        labels = _rendered(reading.labels)
        for metric, value in reading.values:
            heads.setdefault(metric.name, metric)
            rows.setdefault(metric.name, []).append(f"{_head(metric)[0]}{labels} {value!r}\n")
    return "".join(_head(metric)[1] + "".join(rows[name]) for name, metric in heads.items())


@lru_cache(maxsize=1024)
def _head(metric: Metric) -> tuple[str, str]:
    """Its Prometheus name, and the two lines that go before its first value."""
    name = prometheus_name(metric)
    return name, f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"


@lru_cache(maxsize=8192)
def _rendered(labels: Labels) -> str:
    return "{" + ",".join(f'{key}="{_quoted(value)}"' for key, value in labels) + "}"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def _labels(reading: Reading) -> Labels | None:
    """Identity first, in the family's order, then the rest; None where the identity is incomplete."""
    try:
        identity = [(key, reading.identity[key]) for key in reading.family.identity]
    except KeyError:
        return None
    return tuple(_cleaned(identity, reading.attributes))


def _cleaned(identity: list[tuple[str, str]], attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """No name comes twice: one such line would cost the whole page."""
    for name, value in identity:
        yield name, clean(value)
    taken = {name for name, _ in identity}
    for name, value in attributes.items():
        safe = label_name(name)
        if safe not in taken:
            taken.add(safe)
            yield safe, clean(value)


@lru_cache(maxsize=64)
def _metrics(family: Family) -> Mapping[str, Metric]:
    return {metric.name: metric for metric in family.metrics}


def _believed(metric: Metric, value: float | int) -> float | int | None:
    """`value` in the metric's own type, None where it cannot be."""
    if not math.isfinite(value) or (metric.low is not None and value < metric.low) or (metric.high is not None and value > metric.high):
        return None
    if metric.type is ColumnType.F64:
        return float(value)
    if value != int(value) or not 0 <= value < 1 << _BITS[metric.type]:
        return None
    return int(value)
