"""How far this machine's clock is ahead of ingest's, from the time that stands in each of its answers. Pure but for what it remembers."""

from collections import deque
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

AGE: Final = 60.0  # seconds after which an answer says nothing any more
SLACK: Final = 2.0  # seconds that the time in an answer may lie behind: whole seconds, renewed about once a second
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class _Heard:
    at: float  # monotonic
    low: float
    high: float


@dataclass(slots=True)
class ClockOffset:
    """Each answer gives two bounds, and what all bounds of the last minute agree to is believed. Where they do not, a clock was set."""

    _heard: deque[_Heard] = field(default_factory=lambda: deque(maxlen=_MOST))

    def answered(self, date: str | None, sent: float, received: float, at: float) -> None:
        """An answer with the header `Date`, to what was sent and received at those times of this machine's clock (seconds since 1970).
        `at` is monotonic seconds, taken when it was received."""
        try:
            theirs = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            return
        if received < sent:
            return  # our clock was set back meanwhile
        heard = _Heard(at, sent - theirs - SLACK, received - theirs)
        low, high = self._bounds(at)
        if heard.high < low or heard.low > high:
            self._heard.clear()
        self._heard.append(heard)

    def seconds(self, at: float) -> float | None:
        """Seconds by which this machine's clock is ahead; negative: behind; None where no answer came within AGE."""
        low, high = self._bounds(at)
        return (low + high) / 2 if low > float("-inf") else None

    def _bounds(self, at: float) -> tuple[float, float]:
        young = [one for one in tuple(self._heard) if at - one.at <= AGE]
        return max((one.low for one in young), default=float("-inf")), min((one.high for one in young), default=float("inf"))
