"""What a launcher does with a failed attempt when nobody can be asked. Pure; times are monotonic seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that ended: when, and whether that was at its start: before its first step, or soon where it tells no steps."""

    at: float
    at_start: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to start again, and why (not)."""

    restart: bool
    reason: str


def decide(failures: Sequence[Failure], restarts: Sequence[float], now: float, limit: int) -> Verdict:
    """Whether the attempt that failed last is followed by another.

    `failures` are the run's failed attempts in order, `restarts` when an attempt followed another
    (whoever decided that), `limit` how many of them an hour may hold. A failure at the start is
    restarted once: a second one in a row would fail the same way.
    """
    recent = sum(1 for at in restarts if now - at < HOUR)
    if recent >= limit:
        return Verdict(False, f"{recent} restarts within an hour, the limit is {limit}")
    at_start = 0
    for failure in reversed(failures):
        if not failure.at_start:
            break
        at_start += 1
    if at_start > 1:
        return Verdict(False, f"{at_start} attempts in a row ended at their start")
    why = "it ended at its start" if at_start else "it was under way"
    return Verdict(True, f"{why}; {recent} of {limit} restarts used within an hour")
