"""How far this machine's clock is ahead of ingest's, from the time that stands in each of its answers. Pure but for what it remembers."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

AGE: Final = 60.0  # seconds after which an answer says nothing any more
SLACK: Final = 2.0  # seconds that the time in an answer may lie behind: whole seconds, renewed about once a second
APART: Final = 1.0  # seconds between two answers that bear each other out: a server's stop may spoil those that it gives at once
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class _Heard:
    at: float  # monotonic
    low: float
    high: float


@dataclass(slots=True)
class ClockOffset:
    """Each answer gives two bounds, and what all bounds of the last minute agree to is believed.

    An answer that contradicts them may come from a server that stood still. Where the next one, a while later, agrees with it, a clock
    was set.
    """

    _heard: deque[_Heard] = field(default_factory=lambda: deque(maxlen=_MOST))
    _doubt: _Heard | None = None

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
        if _agree(heard, self._young(at)):
            self._doubt = None
            self._heard.append(heard)
        elif self._doubt is None or not _agree(heard, [self._doubt]):
            self._doubt = heard
        elif at - self._doubt.at >= APART:
            self._heard.clear()
            self._heard.extend((self._doubt, heard))
            self._doubt = None

    def seconds(self, at: float) -> float | None:
        """Seconds by which this machine's clock is ahead; negative: behind; None where there were not two answers within AGE."""
        young = self._young(at)
        if not young or young[-1].at - young[0].at < APART:
            return None
        return (max(one.low for one in young) + min(one.high for one in young)) / 2

    def _young(self, at: float) -> list[_Heard]:
        return [one for one in tuple(self._heard) if at - one.at <= AGE]


def _agree(heard: _Heard, others: Iterable[_Heard]) -> bool:
    return all(heard.low <= one.high and one.low <= heard.high for one in others)
