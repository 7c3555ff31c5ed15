"""OTLP's values and times in ours. Pure."""

import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from pipeline.clock import from_micros, to_micros
from pipeline.errors import InputError

FUTURE: Final = 60.0  # seconds by which a sender's clock may be ahead
_NANOS: Final = range(10**17, 10**19)  # 1973 to 2286: seconds, ms and µs fall outside


class FutureTime(InputError):
    """A time too far ahead of now, by `ahead` seconds."""

    def __init__(self, message: str, ahead: float) -> None:
        super().__init__(message)
        self.ahead = ahead


def micros(nanos: int, now: datetime) -> int:
    """Whole microseconds of an OTLP time.

    Raises InputError where it is missing or no time in nanoseconds, FutureTime where it is more than a minute ahead.
    """
    if nanos not in _NANOS:
        raise InputError("no time is given" if nanos == 0 else f"{nanos} is not a time in nanoseconds since 1970")
    check_not_ahead(nanos // 1000, now)
    return nanos // 1000


def time(nanos: int, now: datetime) -> datetime:
    """An OTLP time; raises as `micros` does."""
    return from_micros(micros(nanos, now))


def check_not_ahead(at: int, now: datetime) -> None:
    """Raises FutureTime for microseconds more than a minute after `now`: such rows would hide all later ones."""
    ahead = (at - to_micros(now)) / 1e6
    if ahead > FUTURE:
        raise FutureTime(f"the time is more than {FUTURE:.0f} s ahead of the receiver's clock", ahead)


def plain(value: AnyValue) -> Any:
    """The Python value: str, bool, int, float, list, dict, base64 text for bytes, None for none."""
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {kv.key: plain(kv.value) for kv in value.kvlist_value.values}
    if kind == "array_value":
        return [plain(v) for v in value.array_value.values]
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode()
    return getattr(value, kind) if kind else None


def text(value: AnyValue) -> str:
    """The value as text: JSON for what is not text itself, "" for none."""
    found = plain(value)
    if isinstance(found, str):
        return found
    return "" if found is None else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes as a map of texts."""
    return {kv.key: text(kv.value) for kv in attributes}
