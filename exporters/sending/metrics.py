"""Readings as OTLP metrics. The message is built once and only its times and values change from pass to pass."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, NumberDataPoint, ScopeMetrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from exporters.encode import Accepted
from exporters.sending.wire import pairs
from pipeline.catalog.metrics import Kind, Metric
from pipeline.clock import to_micros

DEVICES: Final = 200  # to a message: it stays far below the size of a request, and no device is split over two
_Shape = list[tuple[object, ...]]


class MetricMessages:
    """Encodes the readings of one collector, pass after pass."""

    def __init__(self) -> None:
        self._messages: list[_Message] = []

    def encode(self, readings: Sequence[Accepted], at: datetime) -> list[bytes]:
        """Serialised ScopeMetrics holding `readings` taken at `at`."""
        parts = [readings[i : i + DEVICES] for i in range(0, len(readings), DEVICES)]
        del self._messages[len(parts) :]
        time = to_micros(at) * 1000
        encoded = []
        for i, part in enumerate(parts):
            shape = _shape(part)
            if i == len(self._messages):
                self._messages.append(_Message(part, shape))
            elif self._messages[i].shape != shape:
                self._messages[i] = _Message(part, shape)
            encoded.append(self._messages[i].fill(part, time))
        return encoded


class _Message:
    """A ScopeMetrics made for readings of one shape."""

    def __init__(self, readings: Sequence[Accepted], shape: _Shape) -> None:
        self.shape = shape
        self._scope = ScopeMetrics()
        self._scope.scope.name = "surefoot.agent"
        messages: dict[str, MetricMessage] = {}
        self._points = [_point(messages, self._scope, reading, metric) for reading in readings for metric, _ in reading.values]

    def fill(self, readings: Sequence[Accepted], time: int) -> bytes:
        """The message with the values of `readings`, which have the shape it was made for."""
        values = [value for reading in readings for _, value in reading.values]
        for point, value in zip(self._points, values, strict=True):
            point.time_unix_nano = time
            if type(value) is int:
                point.as_int = value
            else:
                point.as_double = value
        return self._scope.SerializeToString()


def _shape(readings: Sequence[Accepted]) -> _Shape:
    return [(reading.labels, reading.since_ns, [metric for metric, _ in reading.values]) for reading in readings]


def _point(messages: dict[str, MetricMessage], scope: ScopeMetrics, reading: Accepted, metric: Metric) -> NumberDataPoint:
    message = messages.get(metric.name)
    if message is None:
        message = messages[metric.name] = scope.metrics.add(name=metric.name, unit=metric.unit)
    if metric.kind is Kind.GAUGE:
        point = message.gauge.data_points.add()
    else:
        message.sum.is_monotonic = True
        message.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        point = message.sum.data_points.add(start_time_unix_nano=reading.since_ns)
    point.attributes.extend(pairs(dict(reading.labels)))
    return point
