"""Readings as OTLP metrics. A message is encoded once, and from pass to pass only its times and values are put into the bytes anew."""

import re
import struct
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, NumberDataPoint, ScopeMetrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from exporters.encode import Accepted, Arranger, Layout
from exporters.sending.wire import pairs
from pipeline.catalog.metrics import ColumnType, Kind, Metric
from pipeline.clock import to_micros

DEVICES: Final = 200  # to a message: it stays far below the size of a request, and no device is split over two

# In the bytes of a NumberDataPoint time (field 3, 8 bytes) and value (field 4, a double, or 6, an integer) stand beside each other, always
# as long. Where they are is found by values that no reading has: no text has such bytes, and no start of a counter.
_NO_TIME: Final = (1 << 64) - 1
_NO_INT: Final = (1 << 63) - 1
_NO_FLOAT: Final = sys.float_info.max
_SLOT: Final = re.compile(
    b"\x19"
    + re.escape(struct.pack("<Q", _NO_TIME))
    + b"(?:(\x21)"
    + re.escape(struct.pack("<d", _NO_FLOAT))
    + b"|(\x31)"
    + re.escape(struct.pack("<q", _NO_INT))
    + b")"
)


class MetricMessages:
    """Encodes the readings of one collector, pass after pass."""

    def __init__(self, arranger: Arranger | None = None) -> None:
        self._whole = [arranger or Arranger()]  # of all readings, as others may want them laid out
        self._parts: list[Arranger] = []  # one for each message where there are several
        self._messages: list[_Message] = []

    def encode(self, readings: Sequence[Accepted], at: datetime) -> list[bytes]:
        """Serialised ScopeMetrics holding `readings` taken at `at`."""
        whole = len(readings) <= DEVICES
        parts = [readings] if whole else [readings[i : i + DEVICES] for i in range(0, len(readings), DEVICES)]
        time = to_micros(at) * 1000
        del self._parts[0 if whole else len(parts) :], self._messages[len(parts) :]
        self._parts += [Arranger() for _ in parts[len(self._parts) :] if not whole]
        arrangers = self._whole if whole else self._parts
        return [self._encoded(n, part, time, arrangers[n]) for n, part in enumerate(parts) if part]

    def _encoded(self, n: int, part: Sequence[Accepted], time: int, arranger: Arranger) -> bytes:
        layout, numbers = arranger.of(part)
        if n == len(self._messages):
            self._messages.append(_Message(layout))
        elif self._messages[n].layout is not layout:
            self._messages[n] = _Message(layout)
        return self._messages[n].fill(numbers, time)


class _Message:
    """A ScopeMetrics for readings of one layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        encoded, end = _encoded(layout), 0
        form, self._fields = ["<"], list[bytes | int | float]()
        for slot in _SLOT.finditer(encoded):
            before = encoded[end : slot.start() + 1]  # with the tag of the time
            self._fields += [before, 0, slot[1] or slot[2], 0]
            form.append(f"{len(before)}sQ1s{'d' if slot[1] else 'q'}")
            end = slot.end()
        self._fields.append(encoded[end:])
        form.append(f"{len(encoded) - end}s")
        self._struct = struct.Struct("".join(form))

    def fill(self, numbers: Sequence[float | int], time: int) -> bytes:
        """The message with `numbers`, which are in the order of the layout's rows."""
        self._fields[1::4] = [time] * len(numbers)
        self._fields[3::4] = numbers
        return self._struct.pack(*self._fields)


def _encoded(layout: Layout) -> bytes:
    """The message with values that say where theirs belong."""
    scope = ScopeMetrics()
    scope.scope.name = "surefoot.agent"
    message, last = MetricMessage(), None
    for reading, metric in layout.rows:
        if metric is not last:
            message, last = scope.metrics.add(name=metric.name, unit=metric.unit), metric
        point = _point(message, reading, metric)
        point.time_unix_nano = _NO_TIME
        if metric.type is ColumnType.F64:
            point.as_double = _NO_FLOAT
        else:
            point.as_int = _NO_INT
        point.attributes.extend(pairs(dict(reading.labels)))
    return scope.SerializeToString()


def _point(message: MetricMessage, reading: Accepted, metric: Metric) -> NumberDataPoint:
    if metric.kind is Kind.GAUGE:
        return message.gauge.data_points.add()
    message.sum.is_monotonic = True
    message.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    return message.sum.data_points.add(start_time_unix_nano=reading.since_ns)
