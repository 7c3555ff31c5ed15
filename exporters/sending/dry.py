"""What would be sent, a JSON object a line, instead of sending it."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint, ScopeMetrics

from exporters.sending.sender import SenderStats
from pipeline.records import Record


class DryRun:
    """Prints to `out`. Nothing ever counts as settled, so that no cursor moves: the agent that is run next sends it all."""

    queued = 0
    settled = -1  # not even what was there before the first part

    def __init__(self, out: TextIO, unread: Callable[[], None] = lambda: None) -> None:
        """`unread` is called where `out` takes nothing any more; `failure` says why then."""
        self._out = out
        self._unread = unread
        self.failure: OSError | None = None

    def send_records(self, records: Sequence[tuple[str, Record]]) -> None:
        """A line for each, under its event name."""
        for name, record in records:
            self._say({name: record.attributes()})

    def send_metrics(self, scopes: Iterable[bytes]) -> None:
        """A line for each metric, with its points."""
        for scope in scopes:
            for metric in ScopeMetrics.FromString(scope).metrics:
                points = metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points
                self._say({"metric": metric.name, "unit": metric.unit, "points": [_point(point) for point in points]})

    def flush(self) -> None:
        """Lets the reader see it."""
        self._do(self._out.flush)

    def clock_offset(self) -> float | None:
        """Nobody was asked."""
        return None

    def stats(self) -> SenderStats:
        """Nothing was sent."""
        return SenderStats(0, {}, {}, 0, 0, 0, 0, 0, 0, reachable=False)

    def close(self, timeout: float = 5.0) -> None:
        """Nothing waits."""
        self.flush()

    def _say(self, what: dict[str, object]) -> None:
        self._do(lambda: self._out.write(json.dumps(what, default=str) + "\n"))

    def _do(self, write: Callable[[], object]) -> None:
        if self.failure is None:
            try:
                write()
            except OSError as e:
                self.failure = e
                self._unread()


def _point(point: NumberDataPoint) -> dict[str, object]:
    value = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
    return {"value": value, **{one.key: one.value.string_value for one in point.attributes}}
