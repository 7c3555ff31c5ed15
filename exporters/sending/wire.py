"""Records and log lines as OTLP bytes; requests put together from such bytes. Pure.

A request is the concatenation of its length-prefixed parts (protobuf's wire format), so each part is
encoded once, its exact size is known to the queue, and a batch is a join.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from exporters.labels import encodable
from pipeline.clock import to_micros
from pipeline.records import Record, Step

MAX_LINE: Final = 64 << 10  # characters of a log line that are sent; the rest is cut
_FIRST: Final = b"\x0a"  # tags of fields 1 and 2, length-delimited: resource_x = 1 of a request, resource = 1 of resource_x,
_SECOND: Final = b"\x12"  # scope_x = 2 of resource_x, log_records = 2 of scope_logs

Value = str | int | float | bool | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of text that somebody printed at `at`; `attributes` say who (run, attempt, rank, stream)."""

    at: datetime
    body: str
    attributes: Mapping[str, str | int] = field(default_factory=dict)


def encode_record(event_name: str, record: Record) -> bytes:
    """`record` as a serialised LogRecord named `event_name`.

    A run's or attempt's transition also says which table it is of. Raises ValueError for an integer
    beyond 64 bits.
    """
    given = record.attributes()
    if event_name == "surefoot.transition":
        given["table"] = record.table
    at = record.ended_at if isinstance(record, Step) else getattr(record, "at")  # noqa: B009 - every other record has it
    return _log(at, given, event_name=event_name).SerializeToString()


def encode_line(line: LogLine) -> bytes:
    """`line` as a serialised LogRecord without an event name."""
    log = _log(line.at, line.attributes)
    log.body.string_value = encodable(line.body[:MAX_LINE])
    return log.SerializeToString()


def resource(attributes: Mapping[str, str]) -> bytes:
    """A serialised Resource."""
    return Resource(attributes=pairs(attributes)).SerializeToString()


def logs_request(of: bytes, records: Iterable[bytes]) -> bytes:
    """An ExportLogsServiceRequest: serialised LogRecords of the serialised Resource `of`."""
    scope = b"".join(_framed(_SECOND, record) for record in records)
    return _framed(_FIRST, _framed(_FIRST, of) + _framed(_SECOND, scope))


def metrics_request(of: bytes, scopes: Sequence[bytes]) -> bytes:
    """An ExportMetricsServiceRequest: serialised ScopeMetrics of the serialised Resource `of`."""
    return _framed(_FIRST, _framed(_FIRST, of) + b"".join(_framed(_SECOND, scope) for scope in scopes))


def _log(at: datetime, attributes: Mapping[str, Value], event_name: str = "") -> LogRecord:
    return LogRecord(time_unix_nano=to_micros(at) * 1000, event_name=event_name, attributes=pairs(attributes))


def pairs(attributes: Mapping[str, Value]) -> list[KeyValue]:
    """`attributes` as OTLP key-values, in their order."""
    return [KeyValue(key=key, value=_any(value)) for key, value in attributes.items()]


def _any(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=encodable(value))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))


def _framed(tag: bytes, payload: bytes) -> bytes:
    return tag + _varint(len(payload)) + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
