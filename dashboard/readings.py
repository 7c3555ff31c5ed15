"""Readings in the words of people, by what the catalogue says of a metric. Nothing here knows a metric by name."""

from datetime import UTC, datetime, timedelta

from dashboard import words
from dashboard.markup import Html, span
from pipeline.catalog.metrics import BY_NAME, Family, Kind, Metric
from pipeline.queries.node_readings import DeviceNow
from pipeline.sizes import size

_SINCE_1970 = "since 1970"  # how the help of a metric says that it is a time
_LATE = timedelta(seconds=1)  # by which values of one reading may differ


def name(metric: Metric) -> str:
    """A metric's name without its family: `probe time`."""
    family: Family = BY_NAME[metric.name][0]
    return metric.name.removeprefix(f"{family.name}.").replace(".", " ").replace("_", " ")


def help_of(metric: Metric) -> str:
    """What it is, as it is to be shown: a time that is shown as a time needs no epoch."""
    return metric.help.partition(f", seconds {_SINCE_1970}")[0]


def amount(metric: Metric, value: float) -> str:
    """A value with its unit: `512 GB`, `50 GB/s`, `3 min 20 s`, `41.0 °C`, `yes`."""
    if _SINCE_1970 in metric.help:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if metric.unit == "By":
        return size(value)
    if metric.unit == "By/s":
        return f"{size(value)}/s"
    if metric.unit == "s":
        return f"{value * 1000:.1f} ms" if 0 < value < 0.001 else words.duration(value) if value else "0 s"
    if (metric.low, metric.high) == (0, 1) and value in (0, 1) and metric.type.value.startswith("UInt"):
        return "yes" if value else "no"
    unit = {"1": "", "Cel": " °C", "W": " W", "Hz": " Hz"}.get(metric.unit, f" {metric.unit}")
    return f"{value:,.0f}{unit}" if value == int(value) else f"{value:,.2f}{unit}"


def rate(metric: Metric, a_second: float) -> str:
    """How fast a counter grows: `1.2 GB/s`, `340 a second`; of seconds the share of the time that they make up."""
    if metric.unit == "By":
        return f"{size(a_second)}/s"
    if metric.unit == "s":
        return words.percent(a_second) if a_second <= 1 else f"{a_second:.2f} s a second"
    return f"{a_second:,.0f} a second" if a_second == int(a_second) else f"{a_second:,.2f} a second"


def cell(metric: Metric, device: DeviceNow, now: datetime) -> Html | str:
    """A reading in a table: a counter that grows by how fast; an older value than its device's last reading with its age."""
    last = device.values.get(metric.name)
    if last is None:
        return span("sf-quiet", "-", title=f"{help_of(metric)}: not read")
    late = span("sf-stale", f" read {words.ago(last.at, now)}") if device.at - last.at > _LATE else None
    told = amount(metric, last.value)
    if metric.kind is Kind.COUNTER and last.a_second:
        return span("", rate(metric, last.a_second), late, title=f"{help_of(metric)}: {told} in all")
    return span("", told, late, title=help_of(metric))
