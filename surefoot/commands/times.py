"""Times as people write them on a command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from pipeline.errors import InputError

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
_LONGEST: Final = timedelta(days=3660)


def span(text: str) -> timedelta:
    """`90s`, `30m`, `24h`, `7d`, `2w`. Raises InputError for anything else, and for nothing or more than ten years."""
    found = _SPAN.fullmatch(text.strip())
    length = timedelta(seconds=min(float(found[1]) * _SECONDS[found[2]], 1e9)) if found else timedelta()
    if not timedelta() < length <= _LONGEST:
        raise InputError(f"{text!r} is no length of time: write it as 30m, 24h or 7d")
    return length


def moment(text: str, now: datetime) -> datetime:
    """`2026-11-30`, `2026-11-30T14:05`, `2026-11-30T14:05:00+08:00`, `14:05` (today), or `2h`: so long ago. Without a zone it is UTC.

    Raises InputError for anything else.
    """
    text = text.strip()
    if _SPAN.fullmatch(text):
        return now - span(text)
    try:
        if _CLOCK.fullmatch(text):
            text = f"{now.astimezone(UTC):%Y-%m-%d}T{text.zfill(5) if text.count(':') == 1 else text.zfill(8)}"
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        if not 1973 < at.year < 2286:
            raise ValueError
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"{text!r} is no time: write it as 2026-11-30T14:05 (UTC), with a zone as …+08:00, or as 2h for two hours ago"
        ) from None
