"""Time: aware UTC for what is stored, monotonic seconds for what is measured. Both can be injected."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def utcnow() -> datetime:
    """The time now, aware, UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds that never go back; only differences mean anything."""
    return time.monotonic()


def from_micros(micros: int) -> datetime:
    """The aware UTC time `micros` microseconds after 1970, exactly."""
    return EPOCH + timedelta(microseconds=micros)


def to_micros(at: datetime) -> int:
    """Whole microseconds since 1970 of an aware time, exactly.

    Raises ValueError for a naive time: it has no place on the time line.
    """
    if at.tzinfo is None:
        raise ValueError(f"naive datetime {at!r}: give it a time zone")
    return (at - EPOCH) // _MICROSECOND
