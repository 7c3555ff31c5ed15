"""When a line of the kernel's log was written. Pure."""

from datetime import UTC, datetime
from typing import Final

from exporters.sources.kernel.log import KernelRecord

DRIFT: Final = 5.0  # seconds by which the kernel's clock may differ from what is known about when a line came
KERNEL, RECEIVE, JOURNAL = "kernel", "receive", "journal"


def moment(record: KernelRecord, received: datetime, since: datetime | None, boot: float | None) -> tuple[datetime, str]:
    """The record's time and whose clock that is.

    It was received at `received`, and came after `since`, where that is known: everything before had been read by then. `boot` is when
    the kernel's clock was zero, seconds since 1970. That clock drifts by hours over months: what contradicts when the line came is not
    believed.
    """
    if record.at is not None:
        return _time(record.at) or received, JOURNAL
    if record.clock is None or boot is None:
        return received, RECEIVE
    at = _time(boot + record.clock)
    if at is None or (at - received).total_seconds() > DRIFT or (since is not None and (since - at).total_seconds() > DRIFT):
        return received, RECEIVE
    return min(at, received), KERNEL


def _time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
