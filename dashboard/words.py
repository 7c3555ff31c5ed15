"""Numbers and times in the words that a tired person reads at once. Percent exists only here."""

from datetime import UTC, datetime
from math import floor, isfinite
from signal import Signals

from pipeline.spans import long_span

NO_DATA = "no data"
_HOUR = 3600.0
_GPU_HOURS_FROM = 3600.0  # GPU-seconds from which hours read better


def duration(seconds: float | None) -> str:
    """`0.24 s`, `3.2 s`, `41 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`; "no data" for None."""
    if seconds is None or not isfinite(seconds):
        return NO_DATA
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 0.0995:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 0.995:
        return f"{sign}{seconds:.2f} s"
    if seconds < 9.95:
        return f"{sign}{seconds:.1f} s"
    return sign + long_span(seconds)


def span(seconds: float) -> str:
    """A whole stretch of time by its name: `hour`, `17 min`, `1 min 10 s`, `50 s`."""
    minutes, rest = divmod(round(seconds), 60)
    if (minutes, rest) == (60, 0):
        return "hour"
    return " ".join(part for part in (f"{minutes} min" if minutes else "", f"{rest} s" if rest or not minutes else "") if part)


def between(first: datetime | None, last: datetime | None) -> float | None:
    """Seconds from `first` to `last`; None where one is absent."""
    return None if first is None or last is None else (last - first).total_seconds()


def ago(at: datetime | None, now: datetime) -> str:
    """`just now`, `12 s ago`, `in 3.0 s`, `never`."""
    if at is None:
        return "never"
    seconds = round((now - at).total_seconds())
    if abs(seconds) < 2:
        return "just now"
    passed = duration(float(abs(seconds))) if abs(seconds) >= 10 else f"{abs(seconds)} s"
    return f"in {passed}" if seconds < 0 else f"{passed} ago"


def clock(at: datetime | None, now: datetime) -> str:
    """`14:03:22 UTC`, with the date where it is another day."""
    if at is None:
        return NO_DATA
    at = at.astimezone(UTC)
    return at.strftime("%H:%M:%S UTC" if at.date() == now.astimezone(UTC).date() else "%Y-%m-%d %H:%M:%S UTC")


def when(at: datetime | None, now: datetime) -> str:
    """`14:03:22 UTC (12 s ago)`."""
    return NO_DATA if at is None else f"{clock(at, now)} ({ago(at, now)})"


def offset(at: datetime, start: datetime) -> str:
    """How long after `start`: `+0.00 s`, `+1.2 s`, `+3 min 20 s`."""
    seconds = (at - start).total_seconds()
    return duration(seconds) if seconds < 0 else f"+{duration(seconds)}" if seconds else "+0 s"


def percent(ratio: float | None) -> str:
    """`97.2 %`, `< 0.1 %`; never rounded up to 100 %. "no data" for None."""
    if ratio is None or not isfinite(ratio):
        return NO_DATA
    return "< 0.1 %" if 0 < ratio < 0.001 else f"{floor(ratio * 1000 + 1e-9) / 10:.1f} %"


def whole_percent(ratio: float) -> str:
    """`98 %`, for what is no measurement."""
    return f"{ratio * 100:.0f} %"


def ended(code: int | None, name: str = "") -> str:
    """How a process ended, by its exit status: `exited with 1`, `killed by SIGKILL`; `name` is the signal's where it is known already."""
    if code is None:
        return "ended, how is not known"
    return f"exited with {code}" if code >= 0 else f"killed by {name or _signal(-code)}"


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


_PROCESS = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "gone",
}


def process(state: str) -> str:
    """What a process does, by the letter of /proc/PID/stat: `stopped` for T."""
    return _PROCESS.get(state, state or "unknown")


_TAKEN = {
    "live": ("live cell", "live cells"),
    "stacks": ("stacks", "stacks"),
    "flight_recorder": ("flight recorder dump", "flight recorder dumps"),
}


def evidence(kind: str, count: int = 1) -> str:
    """What was captured of `count` ranks: `live cell`, `live cells`; of a kind that is not known, its name."""
    one, many = _TAKEN.get(kind, (category(kind), category(kind)))
    return one if count == 1 else many


def gpu_time(gpu_seconds: float | None) -> str:
    """`0.4 GPU-s`, `41 GPU-s`, `12.5 GPU-h`, `1,240 GPU-h`."""
    if gpu_seconds is None:
        return NO_DATA
    if gpu_seconds >= _GPU_HOURS_FROM:
        hours = gpu_seconds / _HOUR
        return f"{hours:,.0f} GPU-h" if hours >= 99.95 else f"{hours:.1f} GPU-h"
    return f"{gpu_seconds:.1f} GPU-s" if 0 < gpu_seconds < 9.95 else f"{gpu_seconds:,.0f} GPU-s"


def category(name: str) -> str:
    """`load checkpoint` for `load_checkpoint`."""
    return name.replace("_", " ")


def where(node: str, rank: int | None, device: str = "") -> str:
    """`rank 3 on node-07`, `mlx5_0:1 on node-07`, `node-07`, `place unknown`."""
    what = device or ("" if rank is None else f"rank {rank}")
    if what and node:
        return f"{what} on {node}"
    return what or node or "place unknown"


def plural(count: int, noun: str) -> str:
    """`no run`, `1 run`, `4 runs`."""
    return f"no {noun}" if count == 0 else f"{count:,} {noun}{'' if count == 1 else 's'}"
