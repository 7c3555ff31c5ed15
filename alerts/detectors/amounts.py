"""A rule's words, filled with what was read: amounts as a person says them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from alerts.watched import Observation, Standing
from pipeline.catalog.metrics import BY_NAME, Metric
from pipeline.catalog.rules import View
from pipeline.sizes import size


def said_with(words: str, standing: Standing, seen: Observation | None) -> str:
    """`words` with the values of `seen` in their holes; a hole that nothing fills says "?"."""
    values: Mapping[str, float | str] = seen[1] if seen else {}
    filled = {name: value for name, value in standing.place.labels.items()}
    filled |= {name: value for name, value in values.items() if isinstance(value, str)}  # of the newest event, where it is one
    filled |= {name.replace(".", "_"): _amount(name, value) for name, value in values.items() if name in BY_NAME}
    filled["place"] = standing.place.value or standing.place.node
    filled["value"] = _first(standing, values.get("value"))
    filled["growth"] = _growth(standing)
    filled["held"] = seconds(standing.bad.seconds)
    if count := values.get("count"):
        filled["count"] = _processes(float(count))
    filled["message"] = f": {values['message']}" if values.get("message") else ""
    return words.format_map(_Filled(filled))


class _Filled(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def seconds(value: float) -> str:
    """Seconds for people."""
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _amount(name: str, value: float | str) -> str:
    metric = BY_NAME[name][1]
    if isinstance(value, str):
        return value
    if metric.name == "host.boot":
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return _in_unit(metric, value)


def _in_unit(metric: Metric, value: float) -> str:
    if metric.unit == "By":
        return size(value)
    return seconds(value) if metric.unit == "s" else f"{value:,.0f}" if value == int(value) else f"{value:.1f}"


def _first(standing: Standing, value: float | str | None) -> str:
    """The value that the first limit compares: a share in percent, an increase as a count."""
    if not isinstance(standing.rule.when, tuple) or not isinstance(value, float):
        return "?"
    limit = standing.rule.when[0]
    if limit.of or limit.view is View.RATE:
        return f"{value:.0%}"
    return _processes(value) if limit.metric.name.endswith("oom_kills") else _in_unit(limit.metric, value)


def _processes(count: float) -> str:
    return "1 process was" if count == 1 else f"{count:,.0f} processes were"


def _growth(standing: Standing) -> str:
    """How fast it came: from the last reading that was not bad to the newest one that differs from it."""
    if not standing.before or not standing.seen or not isinstance(standing.rule.when, tuple):
        return ""
    metric = standing.rule.when[0].metric
    (began, earlier), (at, values) = standing.before, standing.seen[0]
    before, after, apart = earlier.get(metric.name), values.get(metric.name), (at - began).total_seconds()
    if not isinstance(before, float) or not isinstance(after, float) or apart <= 0 or before <= after:
        return ""
    return f", used up at {_in_unit(metric, (before - after) / apart)} a second"
