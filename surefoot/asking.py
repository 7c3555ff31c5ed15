"""What a person asks for on a terminal: a request row, like the console's. The leader carries it out; here its answer is waited for."""

import os
import pwd
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import uuid4

from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.hold_records import HoldTransition
from pipeline.records import Request
from pipeline.settings import Settings
from pipeline.store import Store

T = TypeVar("T")
PATIENCE = 5.0  # seconds in which a leader answers
LOOK = 0.1
LONGEST = timedelta(days=366)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def who() -> str:
    """The name of whoever asks."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def span(text: str) -> timedelta:
    """`30m`, `2h`, `1h30m`, `2d` as a time span. Raises InputError."""
    parts = _PART.findall(text)
    if not parts or "".join(n + unit for n, unit in parts) != text:
        raise InputError(f"{text!r} is no time span; write for example 30m, 2h, 1h30m or 2d")
    seconds = sum(float(n) * _UNITS[unit] for n, unit in parts)
    if not 0 < seconds <= LONGEST.total_seconds():
        raise InputError(f"a time span must be longer than nothing and at most {LONGEST.days} days, not {text}")
    return timedelta(seconds=seconds)


def moment(text: str) -> datetime:
    """`2026-12-01T08:00Z` as a time. Raises InputError, also where the time zone is missing."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time; write for example 2026-12-01T08:00Z") from None
    if at.tzinfo is None:
        raise InputError(f"{text} has no time zone; write {text}Z for UTC")
    return at.astimezone(UTC)


def end(starts_at: datetime, lasts: str | None, until: str | None) -> datetime:
    """When it ends, from `--for` or `--until`, of which there must be one. Raises InputError."""
    if (lasts is None) == (until is None):
        raise InputError("say how long: either --for 2h or --until 2026-12-01T08:00Z")
    ends_at = starts_at + span(lasts) if lasts else moment(until or "")
    if ends_at <= max(starts_at, utcnow()):
        raise InputError(f"its end, {clock(ends_at)}, has passed already or lies before its start")
    return ends_at


def request(
    kind: str, target: str, *, actor: str, reason: str = "", starts_at: datetime | None = None, ends_at: datetime | None = None
) -> Request:
    """A new request."""
    return Request(
        intent=uuid4().hex, at=utcnow(), kind=kind, target=target, actor=actor, reason=reason, starts_at=starts_at, ends_at=ends_at
    )


def ask(settings: Settings, asked: Request, answer: Callable[[Store], T | None]) -> T | None:
    """Write a request and wait until `answer` finds what came of it; None where nothing did in time. Raises StoreError."""
    store = Store.connect(settings)
    store.insert([asked], token=asked.intent)
    deadline = time.monotonic() + PATIENCE
    while (found := answer(store)) is None and time.monotonic() < deadline:
        time.sleep(LOOK)
    return found


def clock(at: datetime) -> str:
    """`2026-12-01 08:00:00 UTC`."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def state(hold: HoldTransition, now: datetime) -> str:
    """`holds`, `planned` or `ended`."""
    if hold.holds(now):
        return "holds"
    return "planned" if hold.new_state != "ended" and hold.starts_at > now else "ended"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, each as wide as it must be."""
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
