"""By how much a counter grew: between two readings, and over a while. Pure.

A counter that fell began anew (all of it came since), or, where it is narrow and was near its top, went round. One that stays at its
top says nothing more. Looked at seldom enough, a narrow counter may go round more than once: then less is told than there was.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pipeline.catalog.metrics import Kind, Metric

STALE: Final = 600.0  # seconds; an increase since a reading that is older happened nobody knows when
_STEPS: Final = 4096  # increases that are remembered of one counter


def increase(metric: Metric, before: float, value: float) -> float | None:
    """From `before` to `value`; None where it is not known: the counter stands at its top. On its way there it is at least so much."""
    if metric.kind is not Kind.COUNTER:
        return value - before
    size = 2.0**metric.width
    if metric.saturates and value == size - 1:
        return value - before if before < value else None
    if value >= before:
        return value - before
    went_round = metric.width < 64 and not metric.saturates and 0.75 * size <= before < size and value < 0.25 * size
    return value + size - before if went_round else value


@dataclass(slots=True)
class Growth:
    """The increases of one counter in the last `keep` seconds."""

    metric: Metric
    keep: float
    _last: tuple[datetime, float] | None = None
    _known: bool = False
    _steps: deque[tuple[datetime, float]] = field(default_factory=lambda: deque(maxlen=_STEPS))

    def add(self, at: datetime, value: float) -> None:
        """A reading. One that is not later than the last is left out."""
        if self._last is not None:
            apart = (at - self._last[0]).total_seconds()
            if apart <= 0:
                return
            grown = increase(self.metric, self._last[1], value) if apart <= STALE else None
            self._known = grown is not None
            if grown:
                self._steps.append((at, grown))
        self._last = (at, value)
        while self._steps and (at - self._steps[0][0]).total_seconds() >= self.keep:
            self._steps.popleft()

    def over(self, seconds: float) -> float | None:
        """By how much it grew in the last `seconds` (not more than `keep`) before the newest reading; of a counter that was not looked
        at for so long, what was seen. None where the newest reading says nothing."""
        if self._last is None or not self._known:
            return None
        return sum(grown for at, grown in self._steps if (self._last[0] - at).total_seconds() < seconds)
