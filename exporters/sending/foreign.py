"""Series that the catalogue does not know, as OTLP metrics under their own names. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    DataPointFlags,
    NumberDataPoint,
    ScopeMetrics,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from exporters.collector import Foreign
from exporters.sending.wire import pairs
from pipeline.clock import to_micros

SERIES: Final = 2000  # to a message: it stays far below the size of a request


def encode(series: Sequence[Foreign], at: datetime) -> list[bytes]:
    """Serialised ScopeMetrics holding the values of `series` at `at`; one that has ended bears the flag for "no value"."""
    return [_scope(series[i : i + SERIES], to_micros(at) * 1000) for i in range(0, len(series), SERIES)]


def _scope(series: Sequence[Foreign], time: int) -> bytes:
    scope = ScopeMetrics()
    scope.scope.name = "surefoot.scrape"
    messages: dict[tuple[str, bool], MetricMessage] = {}
    for one in series:
        message = messages.get((one.name, one.counter))
        if message is None:
            message = messages[one.name, one.counter] = scope.metrics.add(name=one.name)
        point = _point(message, one)
        point.time_unix_nano = time
        point.attributes.extend(pairs(dict(one.labels)))
        if one.value is None:
            point.flags = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
        else:
            point.as_double = one.value
    return scope.SerializeToString()


def _point(message: MetricMessage, one: Foreign) -> NumberDataPoint:
    if not one.counter:
        return message.gauge.data_points.add()
    message.sum.is_monotonic = True
    message.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    return message.sum.data_points.add(start_time_unix_nano=round(one.since * 1e9) if one.since else 0)
