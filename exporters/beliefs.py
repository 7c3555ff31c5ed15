"""Which values of a reading are believed: those of its family, of the metric's own type and within its range. Pure."""

import sys
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import ge, itemgetter, le
from typing import Final, NamedTuple

from pipeline.catalog.metrics import ColumnType, Family, Metric

_BITS: Final = {ColumnType.U8: 8, ColumnType.U32: 32, ColumnType.U64: 63}  # 63: OTLP's integers are signed

Believed = tuple[tuple[Metric, ...], tuple[float | int, ...], int]
"""The metrics whose values are believed, in the family's order; those values, in the metrics' own types; how many others there are."""


class _Check(NamedTuple):
    """What of a metric's values is believed: those from `low` to `high`, whole ones where it is `whole`."""

    metric: Metric
    low: float
    high: float
    whole: bool


class _Shape(NamedTuple):
    """The metrics of readings that hold values of the right types for the same names, in the family's order, and which values those are."""

    metrics: tuple[Metric, ...]
    pick: Callable[[Sequence[float | int | None]], tuple[float | int, ...]]
    lows: tuple[float, ...]
    highs: tuple[float, ...]


_MOST: Final = 4096  # shapes that are kept
_CHECKS: Final[dict[str, tuple[Family, Mapping[str, _Check]]]] = {}
_SHAPES: Final[dict[tuple[str, tuple[str, ...], tuple[type, ...]], tuple[Family, _Shape | None]]] = {}


def believed(family: Family, given: Mapping[str, float | int | None]) -> Believed:
    """What of a reading's values, by metric name, is believed.

    Nearly every reading is all well, and of a shape that was seen before: it is then looked at as a whole, any other value by value.
    """
    values = tuple(given.values())
    shape = _shape(family, tuple(given), tuple(map(type, values)))
    if shape is None:
        return _each(family, given)
    numbers = shape.pick(values)
    if all(map(le, shape.lows, numbers)) and all(map(ge, shape.highs, numbers)):  # what is no number is neither
        return shape.metrics, numbers, 0
    return _each(family, given)


Column = Sequence[float | int | None]


def believed_columns(family: Family, given: Mapping[str, Column]) -> tuple[tuple[Metric, ...], list[Column]] | None:
    """The columns, by metric name, whose values are all believed and in the metrics' own types, in the family's order.

    Columns that are absent altogether are left out. None where a column is neither: its values must be looked at one by one.
    """
    checks = _checks(family)
    if not given.keys() <= checks.keys():
        return None
    metrics, columns = [], []
    for name, check in checks.items():
        column = given.get(name, ())
        types = set(map(type, column))
        if types == {int if check.whole else float} and _within(check, column):  # type: ignore[arg-type]  # none is None
            metrics.append(check.metric)
            columns.append(column)
        elif not types <= {type(None)}:
            return None
    return tuple(metrics), columns


def _within(check: _Check, numbers: Sequence[float | int]) -> bool:
    """Whether all lie within the range. What is no number makes the sum none, too; where none is negative, none is above the sum."""
    total = sum(numbers)
    if not check.low <= min(numbers):
        return False
    return (check.low >= 0 and total <= check.high) or ((check.whole or isfinite(total)) and max(numbers) <= check.high)


def _each(family: Family, given: Mapping[str, float | int | None]) -> Believed:
    values: list[tuple[Metric, float | int]] = []
    refused = known = 0
    checks = _checks(family)
    for name, (metric, low, high, whole) in checks.items():
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
        refused += sum(value is not None for name, value in given.items() if name not in checks)
    metrics, numbers = zip(*values, strict=True) if values else ((), ())
    return metrics, numbers, refused


def _shape(family: Family, names: tuple[str, ...], types: tuple[type, ...]) -> _Shape | None:
    """The shape of readings with values of such types; None where not all of them are as their metrics want them."""
    key = (family.name, names, types)
    kept = _SHAPES.get(key)
    if kept is None or kept[0] is not family:
        if len(_SHAPES) >= _MOST:
            _SHAPES.clear()
        kept = _SHAPES[key] = (family, _shape_of(_checks(family), names, types))
    return kept[1]


def _shape_of(checks: Mapping[str, _Check], names: tuple[str, ...], types: tuple[type, ...]) -> _Shape | None:
    there = {name: n for n, (name, one) in enumerate(zip(names, types, strict=True)) if one is not type(None)}
    if not all(name in checks and types[n] is (int if checks[name].whole else float) for name, n in there.items()):
        return None
    wanted = [check for name, check in checks.items() if name in there]
    places = [there[check.metric.name] for check in wanted]
    return _Shape(
        tuple(check.metric for check in wanted), picker(places), tuple(check.low for check in wanted), tuple(check.high for check in wanted)
    )


def picker(places: Sequence[int]) -> Callable[[Sequence[float | int | None]], tuple[float | int, ...]]:
    """Gives the values at `places`, as a tuple however many they are."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)  # type: ignore[misc]  # none of them is None


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
