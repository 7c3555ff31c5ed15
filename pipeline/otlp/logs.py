"""OTLP log records as rows: those with one of our event names become records, all others log lines. Pure."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pipeline.catalog import events
from pipeline.catalog.facts import MAX_FACTS, MAX_NAME, MAX_TEXT, MAX_WHAT, ChangeKind
from pipeline.catalog.layers import Layer, Phase, Severity
from pipeline.clock import to_micros
from pipeline.errors import InputError
from pipeline.otlp.decoded import Decoded, Row
from pipeline.otlp.values import FutureTime, check_not_ahead, plain, text, texts, time
from pipeline.records import REMOTE, AttemptFacts, AttemptTransition, Change, Record, RunTransition

TABLE: Final = "table"  # the attribute by which a transition names its table
_WIDE: Final = frozenset({"step", "completed", "tokens", "samples", "overrun"})  # 64-bit columns; the wire has 63 bits
_SIGNED: Final = frozenset({"exit_code"})
_HIGHEST: Final[Mapping[str, float]] = {  # of what cannot be below 0; a duration beyond it (31 years) was measured in another unit
    **dict.fromkeys((*Phase, "duration"), 1e9),
    "cpu_seconds": 1e13,
    "flops": math.inf,
}
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "layer": frozenset(Layer),
    "severity": frozenset(Severity),
    "kind": frozenset(events.BY_NAME),
    "phase": frozenset({*Phase, ""}),
}


def decode(request: ExportLogsServiceRequest, now: datetime) -> Decoded:
    """The rows of a request received at `now`; records that cannot be kept are counted with the reason."""
    out = Decoded()
    for resource in request.resource_logs:
        labels = texts(resource.resource.attributes)
        for scope in resource.scope_logs:
            for log in scope.log_records:
                try:
                    if log.event_name in REMOTE:
                        out.add(_record(log, now))
                    else:
                        out.add_row("logs", _line(log, labels, scope.scope.name, now))
                except FutureTime as e:
                    out.skew = max(out.skew, e.ahead)
                    out.reject(f"{log.event_name or 'log line'}: {e}")
                except InputError as e:
                    out.reject(f"{log.event_name or 'log line'}: {e}")
                else:
                    out.kept += 1
    return out


def _record(log: LogRecord, now: datetime) -> Record:
    given = {kv.key: plain(kv.value) for kv in log.attributes}
    classes = REMOTE[log.event_name]
    if len(classes) > 1:
        table = given.pop(TABLE, None)
        classes = tuple(c for c in classes if c.table == table)
        if not classes:
            raise InputError(f"{TABLE}={table!r} names no table that may be written")
    return _checked(classes[0].from_attributes(given), now)


def _checked(record: Record, now: datetime) -> Record:
    """The record as it is kept; raises InputError where a value is none that its column may hold."""
    if isinstance(record, Change):
        return _checked_change(record, now)
    _check_record(record)
    changes: dict[str, Any] = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if isinstance(value, datetime):
            check_not_ahead(to_micros(value), now)
        elif type(value) is int:
            _check_whole(f.name, value)
        elif type(value) is float:
            if not math.isfinite(value):
                changes[f.name] = None  # every float that may be sent is optional
            elif f.name in _HIGHEST and not 0 <= value <= _HIGHEST[f.name]:
                raise InputError(f"{f.name}={value} is beyond its valid range")
        elif f.name in _WORDS and value not in _WORDS[f.name]:
            raise InputError(f"{f.name}={value!r} is not in the catalogue")
        elif f.name == "node" and value != value.lower():
            changes["node"] = value.lower()
    return replace(record, **changes) if changes else record


def _check_record(record: Record) -> None:
    if isinstance(record, (RunTransition, AttemptTransition)) and record.new_state not in record.states:
        raise InputError(f"new_state={record.new_state!r} is none of {', '.join(record.states)}")
    if isinstance(record, AttemptFacts):
        _check_facts(record.facts)


def _check_facts(facts: Mapping[str, str]) -> None:
    if len(facts) > MAX_FACTS:
        raise InputError(f"{len(facts)} facts are more than the {MAX_FACTS} that one attempt may have on a node")
    if any(len(name) > MAX_NAME or len(value) > MAX_TEXT for name, value in facts.items()):
        raise InputError(f"a fact's name may have {MAX_NAME} characters and its text {MAX_TEXT}")


def _checked_change(change: Change, now: datetime) -> Change:
    """A change has words of its own for its kind."""
    check_not_ahead(to_micros(change.at), now)
    if change.kind not in frozenset(ChangeKind):
        raise InputError(f"kind={change.kind!r} is none of {', '.join(ChangeKind)}")
    if not change.what.strip() or len(change.what) > MAX_WHAT:
        raise InputError(f"what a change is must be said in 1 to {MAX_WHAT} characters")
    return replace(change, nodes=change.nodes.lower())


def _check_whole(name: str, value: int) -> None:
    low, high = (-(2**31), 2**31) if name in _SIGNED else (0, 2**63 if name in _WIDE else 2**32)
    if not low <= value < high:
        raise InputError(f"{name}={value} is beyond its valid range")


def _line(log: LogRecord, labels: Mapping[str, str], scope: str, now: datetime) -> Row:
    nanos = log.time_unix_nano or log.observed_time_unix_nano
    return {
        "Timestamp": time(nanos, now) if nanos else now,
        "TraceId": log.trace_id.hex(),
        "SpanId": log.span_id.hex(),
        "TraceFlags": log.flags & 0xFF,
        "SeverityText": log.severity_text,
        "SeverityNumber": log.severity_number if 0 <= log.severity_number <= 24 else 0,
        "ServiceName": labels.get("service.name", ""),
        "Body": text(log.body),
        "ResourceAttributes": labels,
        "ScopeName": scope,
        "LogAttributes": texts(log.attributes),
        "EventName": log.event_name,
    }
