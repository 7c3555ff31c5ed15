"""Readings checked against the catalogue, and written as Prometheus text."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, count, repeat
from typing import Any, Final, NamedTuple

from exporters.beliefs import believed, believed_columns, picker
from exporters.collector import Reading, Table
from exporters.labels import clean, label_name
from pipeline.catalog.metrics import Family, Kind, Metric

PREFIX: Final = "surefoot_"
_SUFFIXES: Final = {
    **{"By": "_bytes", "s": "_seconds", "Hz": "_hertz", "W": "_watts", "J": "_joules", "Cel": "_celsius", "1": ""},
    "By/s": "_bytes_per_second",
}

Labels = tuple[tuple[str, str], ...]
_Shape = list[tuple[Labels, int, tuple[Metric, ...]]]


class Accepted(NamedTuple):
    """A reading whose labels are safe and whose values are all believed: `numbers` of `metrics`, in the family's order. `since_ns` is 0
    where it is not known."""

    family: Family
    labels: Labels
    metrics: tuple[Metric, ...]
    numbers: tuple[float | int, ...]
    since_ns: int

    @property
    def values(self) -> tuple[tuple[Metric, float | int], ...]:
        """Each metric with its number."""
        return tuple(zip(self.metrics, self.numbers, strict=True))


_ACCEPTED: Final[Callable[[tuple[Any, ...]], Accepted]] = partial(tuple.__new__, Accepted)  # as Accepted._make, in half the time


def accept(observed: Iterable[Reading | Table]) -> tuple[list[Accepted], int]:
    """The readings fit to be sent, absent values left out; and how many values were rejected.

    Rejected are values beyond the metric's range, of the wrong type or not of the family, and all of a
    second reading of one device. A table that is all well is taken as a whole.
    """
    found: dict[tuple[str, str], Accepted] = {}
    rejected = 0
    for one in observed:
        if isinstance(one, Table):
            whole = _whole(one)
            if whole is not None and not found:
                found = whole
            elif whole is not None and found.keys().isdisjoint(whole):
                found.update(whole)
            else:
                rejected += sum(_take(reading, found) for reading in one.readings())
        else:
            rejected += _take(one, found)
    return list(found.values()), rejected


def _take(reading: Reading, found: dict[tuple[str, str], Accepted]) -> int:
    """Puts the reading to those that were `found` so far; how many of its values are rejected."""
    try:
        identity = tuple([reading.identity[name] for name in reading.family.identity])
    except KeyError:
        return sum(value is not None for value in reading.values.values())
    labels, device = _cleaned(reading.family.name, reading.family.identity, identity, tuple(reading.attributes.items()))
    if device in found:
        return sum(value is not None for value in reading.values.values())
    metrics, numbers, refused = believed(reading.family, reading.values)
    found[device] = Accepted(reading.family, labels, metrics, numbers, _ns(reading.since))
    return refused


def _whole(table: Table) -> dict[tuple[str, str], Accepted] | None:
    """The table's readings by device, where each column is either all believed or all absent; None where one is neither."""
    family = table.family
    believed = believed_columns(family, table.columns)
    named = _cleaned_all(family.name, family.identity, tuple(table.devices), tuple([tuple(more.items()) for more in table.attributes]))
    if believed is None or named is None:
        return None
    (metrics, columns), since_ns = believed, _ns(table.since)
    devices, labels = named
    numbers: Iterable[tuple[float | int, ...]] = zip(*columns, strict=True) if columns else repeat((), len(labels))
    rows = zip(repeat(family), labels, repeat(metrics), numbers, repeat(since_ns), strict=False)
    return dict(zip(devices, map(_ACCEPTED, rows), strict=True))


def _ns(since: float | None) -> int:
    return round(since * 1e9) if since else 0


def prometheus_name(metric: Metric) -> str:
    """The metric's name on a Prometheus page: base unit and `_total` appended. `_count` is kept for histograms there: a count of
    things is in the plural."""
    name = metric.name.replace(".", "_")
    if metric.kind is Kind.GAUGE and name.endswith("_count"):
        name = name.removesuffix("_count") + "s"
    return PREFIX + name + _SUFFIXES[metric.unit] + ("_total" if metric.kind is Kind.COUNTER else "")


class Layout:
    """What readings have in common from pass to pass, as long as devices, labels and the metrics that have values are the same: all but
    the numbers. Both encodings want those of a metric beside each other."""

    def __init__(self, shape: _Shape, readings: Sequence[Accepted]) -> None:
        """`rows` are the places on which a number stands: its reading and its metric."""
        self.shape = shape
        metrics: dict[str, list[tuple[int, Accepted, Metric]]] = {}
        places = count()
        for reading in readings:
            for metric in reading.metrics:
                metrics.setdefault(metric.name, []).append((next(places), reading, metric))
        ordered = [*chain.from_iterable(metrics.values())]
        self.rows = [(reading, metric) for _, reading, metric in ordered]
        self._pick = picker([place for place, _, _ in ordered])

    def numbers(self, readings: Sequence[Accepted]) -> tuple[float | int, ...]:
        """Those of `readings`, which have this layout, in the order of `rows`."""
        return self._pick([*chain.from_iterable([reading.numbers for reading in readings])])


class Arranger:
    """Lays out the readings of one collector, pass after pass; for both encodings of a pass once."""

    def __init__(self) -> None:
        self._readings: Sequence[Accepted] = ()
        self._layout = Layout([], ())
        self._numbers: tuple[float | int, ...] = ()

    def of(self, readings: Sequence[Accepted]) -> tuple[Layout, tuple[float | int, ...]]:
        """The layout of `readings`, the same one as before where nothing but numbers has changed; and the numbers."""
        if readings is not self._readings:
            shape = [(labels, since_ns, metrics) for _, labels, metrics, _, since_ns in readings]
            if shape != self._layout.shape:
                self._layout = Layout(shape, readings)
            self._readings, self._numbers = readings, self._layout.numbers(readings)
        return self._layout, self._numbers


class PageText:
    """Writes the readings of one collector in exposition format 0.0.4, pass after pass. All readings of one family must be in one call."""

    def __init__(self, arranger: Arranger | None = None) -> None:
        self._arranger = arranger or Arranger()
        self._layout: Layout | None = None
        self._template = ""

    def of(self, readings: Sequence[Accepted]) -> str:
        """The text of `readings`."""
        layout, numbers = self._arranger.of(readings)
        if layout is not self._layout:
            self._layout, self._template = layout, _template(layout)
        return self._template % numbers


def prometheus_text(readings: Sequence[Accepted]) -> str:
    """The readings in exposition format 0.0.4. All readings of one family must be in one call."""
    return PageText().of(readings)


def _template(layout: Layout) -> str:
    lines, last = [], None
    for reading, metric in layout.rows:
        name, head = _head(metric)
        lines.append(f"{head if metric is not last else ''}{name}{_rendered(reading.labels)} ".replace("%", "%%") + "%r\n")
        last = metric
    return "".join(lines)


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


@lru_cache(maxsize=8192)
def _cleaned(family: str, names: tuple[str, ...], identity: tuple[str, ...], attributes: Labels) -> tuple[Labels, tuple[str, str]]:
    """Labels, identity first and in the family's order, then the rest; and what tells the device from all others.

    No name comes twice: one such line would cost the whole page.
    """
    labels = {name: clean(value) for name, value in zip(names, identity, strict=True)}
    own = "\n".join(labels.values())  # which none of them holds
    for name, value in attributes:
        labels.setdefault(label_name(name), clean(value))
    return tuple(labels.items()), (family, own)


@lru_cache(maxsize=64)
def _cleaned_all(
    family: str, names: tuple[str, ...], devices: tuple[tuple[str, ...], ...], attributes: tuple[Labels, ...]
) -> tuple[list[tuple[str, str]], list[Labels]] | None:
    """What tells each of a table's devices from all others, and its labels; None where two of them are one."""
    named = [_cleaned(family, names, device, more) for device, more in zip(devices, attributes or repeat(()), strict=bool(attributes))]
    own = [device for _, device in named]
    return (own, [labels for labels, _ in named]) if len({*own}) == len(devices) else None
