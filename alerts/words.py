"""Numbers and times in the words of a page."""

from datetime import UTC, datetime
from math import floor

from pipeline.spans import long_span

_HOUR = 3600


def duration(seconds: float) -> str:
    """`0.7 s`, `41 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`; never negative."""
    return f"{max(seconds, 0.0):.1f} s" if seconds < 9.95 else long_span(seconds)


def gpu_time(gpu_seconds: float) -> str:
    """`1.4 GPU-seconds` while small, `12.5 GPU-hours` from one hour on."""
    if gpu_seconds < _HOUR:
        return f"{gpu_seconds:.1f} GPU-seconds" if gpu_seconds < 9.95 else f"{gpu_seconds:,.0f} GPU-seconds"
    hours = gpu_seconds / _HOUR
    return f"{hours:.1f} GPU-hours" if hours < 99.95 else f"{hours:,.0f} GPU-hours"


def gpus(count: int) -> str:
    """`no GPU`, `1 GPU`, `1,024 GPUs`."""
    return "no GPU" if count == 0 else f"{count:,} GPU{'' if count == 1 else 's'}"


def clock(at: datetime, now: datetime) -> str:
    """`14:03:22 UTC`, with the date where it is another day than `now`."""
    at = at.astimezone(UTC)
    return at.strftime("%H:%M:%S UTC" if at.date() == now.astimezone(UTC).date() else "%Y-%m-%d %H:%M:%S UTC")


def percent(ratio: float) -> str:
    """`97 %`; never rounded up to 100 %."""
    return f"{floor(ratio * 100 + 1e-9)} %"


def sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end."""
    text = text.strip()
    return text and text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")
