"""OTLP/HTTP bodies: what they say, and the answers in the same encoding. Pure.

Nothing but InputError is raised for any bytes. Source: opentelemetry-proto, docs/specification.md.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from pipeline.errors import InputError
from pipeline.otlp import logs, metrics
from pipeline.otlp.decoded import Decoded

_HEX_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"})
_BAD_JSON: Final = (
    json_format.Error,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
)  # json_format lets these through
_MAX_DEPTH: Final = 64
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class ContentType(StrEnum):
    """The two encodings of OTLP/HTTP."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Signal(StrEnum):
    """The three services."""

    METRICS = "metrics"
    LOGS = "logs"
    TRACES = "traces"


_REQUESTS: Final[dict[Signal, type[Message]]] = {
    Signal.METRICS: ExportMetricsServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.TRACES: ExportTraceServiceRequest,
}


def decode(signal: Signal, content_type: ContentType, body: bytes, now: datetime) -> Decoded:
    """The rows that `body`, received at `now`, holds, and what was refused of it.

    Raises InputError where the body as a whole cannot be read.
    """
    return _DECODERS[signal](_parse(_REQUESTS[signal], content_type, body), now)


def answer(signal: Signal, content_type: ContentType, decoded: Decoded) -> bytes:
    """The body of the answer 200."""
    message = decoded.message()
    response: Message
    if signal is Signal.METRICS:
        response = ExportMetricsServiceResponse()
        if message:
            response.partial_success.rejected_data_points = decoded.rejected
            response.partial_success.error_message = message
    elif signal is Signal.LOGS:
        response = ExportLogsServiceResponse()
        if message:
            response.partial_success.rejected_log_records = decoded.rejected
            response.partial_success.error_message = message
    else:
        response = ExportTraceServiceResponse()
        if message:
            response.partial_success.rejected_spans = decoded.rejected
            response.partial_success.error_message = message
    return _encode(response, content_type)


def refusal(content_type: ContentType, code: int, message: str) -> bytes:
    """The body of an error answer: a google.rpc.Status."""
    return _encode(Status(code=code, message=message), content_type)


def _encode(message: Message, content_type: ContentType) -> bytes:
    if content_type is ContentType.PROTOBUF:
        return message.SerializeToString()
    return json_format.MessageToJson(message, indent=None).encode()


def _parse(request: type[Message], content_type: ContentType, body: bytes) -> Any:
    if content_type is ContentType.PROTOBUF:
        try:
            return request.FromString(body)
        except DecodeError as e:
            raise InputError(f"the body is not a whole {request.DESCRIPTOR.name}: {e}") from e
    try:
        given = json.loads(body) if body else {}
        if _ESCAPED_SURROGATE.search(body):  # half of a pair is no text; protobuf's parser breaks on it
            json.dumps(given, ensure_ascii=False).encode()
        _require_objects(given, request.DESCRIPTOR)
        _ids_to_base64(given)
        return json_format.ParseDict(given, request(), ignore_unknown_fields=True, max_recursion_depth=_MAX_DEPTH)
    except _BAD_JSON as e:
        raise InputError(f"the body is not a {request.DESCRIPTOR.name} in JSON: {str(e)[:200]}") from e


def _require_objects(given: Any, descriptor: Any) -> None:
    """protobuf's parser walks a list or a text as if it were an object, and finds nothing amiss. Raises ValueError for one."""
    waiting = [(given, descriptor)]
    while waiting:
        value, kind = waiting.pop()
        if not isinstance(value, dict):
            raise ValueError(f"{kind.name} must be an object")
        for field in kind.fields:
            if field.message_type is None:
                continue
            for inner in (value.get(field.json_name), value.get(field.name)):
                many = inner if field.is_repeated and isinstance(inner, list) else [inner]
                waiting += [(one, field.message_type) for one in many if one is not None]


def _ids_to_base64(given: Any) -> None:
    """OTLP writes trace and span ids in hex, where protobuf's JSON has base64."""
    waiting = [given]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for key in value.keys() & _HEX_IDS:
                value[key] = b64encode(bytes.fromhex(value[key])).decode()
            waiting += value.values()


def _traces(request: Any, _: datetime) -> Decoded:
    decoded = Decoded()
    if spans := sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans):
        decoded.reject("traces are not kept", spans)
    return decoded


_DECODERS: Final[dict[Signal, Callable[[Any, datetime], Decoded]]] = {
    Signal.METRICS: metrics.decode,
    Signal.LOGS: logs.decode,
    Signal.TRACES: _traces,
}
