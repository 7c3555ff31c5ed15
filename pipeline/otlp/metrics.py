"""OTLP metrics as rows: a device's readings of one time become one row of its family's table. Pure.

Metrics that the catalogue does not know become samples, with their labels once in `series`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_DELTA,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    SummaryDataPoint,
)

from pipeline.catalog import metrics as catalog
from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import ColumnType, Family
from pipeline.clock import from_micros
from pipeline.errors import InputError
from pipeline.otlp.decoded import Decoded
from pipeline.otlp.values import FutureTime, micros, texts

NO_VALUE: Final = 1  # flag: the series goes on, but there is no value at this time
_LARGEST: Final = {ColumnType.U8: 2**8 - 1, ColumnType.U32: 2**32 - 1, ColumnType.U64: 2**64 - 1}
Number = int | float
Distribution = HistogramDataPoint | ExponentialHistogramDataPoint | SummaryDataPoint


@dataclass(slots=True)
class _Request:
    """What has been read so far; `labels` are those of the resource being read."""

    now: datetime
    out: Decoded = field(default_factory=Decoded)
    labels: dict[str, str] = field(default_factory=dict)
    readings: dict[tuple[str, int, int], dict[str, Any]] = field(default_factory=dict)
    devices: dict[int, dict[str, Any]] = field(default_factory=dict)
    series: dict[int, dict[str, Any]] = field(default_factory=dict)


def decode(request: ExportMetricsServiceRequest, now: datetime) -> Decoded:
    """The rows of a request received at `now`; points that cannot be kept are counted with the reason."""
    r = _Request(now)
    for resource in request.resource_metrics:
        r.labels = texts(resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                _read(r, metric)
    for (family, _, _), row in r.readings.items():
        r.out.add_row(f"{family}_raw", row)
    for table, rows in (("devices", r.devices), ("series", r.series)):
        for row in rows.values():
            r.out.add_row(table, row)
    return r.out


def _read(r: _Request, metric: Metric) -> None:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    known = catalog.BY_NAME.get(metric.name)
    for point in getattr(metric, kind).data_points:
        try:
            if known:
                _reading(r, known, metric, point)
            else:
                _samples(r, metric, kind, point)
        except FutureTime as e:
            r.out.skew = max(r.out.skew, e.ahead)
            r.out.reject(f"{metric.name}: {e}")
        except InputError as e:
            r.out.reject(f"{metric.name}: {e}")
        else:
            r.out.kept += 1


# --- what the catalogue knows ----------------------------------------------------------------


def _reading(r: _Request, known: tuple[Family, catalog.Metric], metric: Metric, point: Any) -> None:
    family, wanted = known
    if not isinstance(point, NumberDataPoint):
        raise InputError("a single number is kept of this metric, not a distribution")
    if metric.unit and metric.unit != wanted.unit:
        raise InputError(f"is kept in {wanted.unit}, not in {metric.unit}")
    if wanted.kind is catalog.Kind.COUNTER and _is_delta(metric):
        raise InputError("is kept as a cumulative counter, not as deltas")
    at = micros(point.time_unix_nano, r.now)
    value = _believed(wanted, _value(point))
    device, node = _device(r, family, texts(point.attributes))
    row = r.readings.setdefault((family.name, device, at), {"device_id": device, "ts": from_micros(at), "node": node})
    row[family.column(wanted)] = value


def _believed(metric: catalog.Metric, value: Number | None) -> Number | None:
    """The value as its column holds it, None for absent; raises InputError beyond the valid range."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value) or (metric.low is not None and value < metric.low) or (metric.high is not None and value > metric.high):
        raise InputError(f"{value} is beyond its valid range")
    largest = _LARGEST.get(metric.type)
    if largest is None:
        return float(value)
    if value != int(value) or not 0 <= value <= largest:
        raise InputError(f"{value} is not a whole number that fits {metric.type}")
    return int(value)


def _device(r: _Request, family: Family, attributes: dict[str, str]) -> tuple[int, str]:
    """The device's id and node; also notes the device for the inventory."""
    node = (attributes.pop("node", "") or r.labels.get("host.name", "")).lower()
    identity = {**attributes, "node": node}
    if missing := [key for key in family.identity if not identity.get(key)]:
        raise InputError(f"no {missing[0]} is given, which identifies a {family.name}")
    device = device_id(family, identity)
    if device not in r.devices:
        name = " ".join(identity[key] for key in family.identity if key != "node") or node
        r.devices[device] = {
            "device_id": device,
            "family": family.name,
            "node": node,
            "name": name,
            "attrs": attributes,
            "seen_at": r.now,
        }
    return device, node


# --- what it does not know -------------------------------------------------------------------


def series_id(metric: str, labels: Mapping[str, str]) -> int:
    """The 64-bit id of a series: the same for the same name and labels, whatever their order."""
    words = json.dumps([metric, *sorted(labels.items())], ensure_ascii=False)
    return int.from_bytes(blake2b(words.encode(), digest_size=8).digest(), "big")


def _samples(r: _Request, metric: Metric, kind: str, point: Any) -> None:
    if not metric.name:
        raise InputError("a metric has no name")
    at = micros(point.time_unix_nano, r.now)
    labels = {**r.labels, **texts(point.attributes)}
    if isinstance(point, NumberDataPoint):
        values: list[tuple[str, str, Number | None]] = [(metric.name, _kind(metric, kind), _finite(_value(point)))]
    else:
        values = list(_distribution(metric, point))
        r.out.note(f"{metric.name}: of a distribution only count and sum are kept")
    for name, how, value in values:
        series = series_id(name, labels)
        if series not in r.series:
            unit = "1" if name.endswith(".count") and name != metric.name else metric.unit
            r.series[series] = {"series": series, "metric": name, "unit": unit, "kind": how, "labels": labels, "seen_at": r.now}
        since = None if how == "gauge" else _since(point.start_time_unix_nano, at)
        r.out.add_row("samples", {"metric": name, "series": series, "ts": from_micros(at), "value": value, "since": since})


def _distribution(metric: Metric, point: Distribution) -> Iterator[tuple[str, str, Number | None]]:
    absent = point.flags & NO_VALUE
    how = "delta" if _is_delta(metric) else "counter"
    yield f"{metric.name}.count", how, None if absent else float(point.count)
    if isinstance(point, SummaryDataPoint) or point.HasField("sum"):
        yield f"{metric.name}.sum", how, None if absent else _finite(point.sum)


def _since(nanos: int, at: int) -> datetime | None:
    """When a counter began, so that the first value of a new one is told from that of an old one that is seen for the first time."""
    return from_micros(nanos // 1000) if 0 < nanos // 1000 <= at else None


def _kind(metric: Metric, kind: str) -> str:
    if kind == "gauge":
        return "gauge"
    if _is_delta(metric):
        return "delta"
    return "counter" if metric.sum.is_monotonic else "updown"


def _is_delta(metric: Metric) -> bool:
    data = getattr(metric, metric.WhichOneof("data") or "gauge")
    return getattr(data, "aggregation_temporality", None) == AGGREGATION_TEMPORALITY_DELTA


def _value(point: NumberDataPoint) -> Number | None:
    """The number, None where the point says that there is none."""
    kind = point.WhichOneof("value")
    if kind is None or point.flags & NO_VALUE:
        return None
    return point.as_int if kind == "as_int" else point.as_double


def _finite(value: Number | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise InputError("the value is not finite")
    return float(value)
