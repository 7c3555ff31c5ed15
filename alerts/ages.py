"""Ages by our own monotonic clock: how long ago something we read last changed.

A wall clock that steps, here or on the node, must not look like silence. So a difference of wall clocks is
believed only where it is plausible: a value that was not there at our last look cannot be older than that
look plus the telemetry's usual delay. After our own start the wall clocks are all there is.
"""

from collections.abc import Hashable
from dataclasses import dataclass

USUAL_DELAY = 1.5  # seconds from a reading on a node to the row that we read


@dataclass(slots=True)
class _Seen:
    value: Hashable
    since: float
    look: int


class Ages:
    """What was seen when. One `begin` a look, then `of` for each thing seen."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, _Seen] = {}
        self._look = 0
        self._now = 0.0
        self._before: float | None = None

    def begin(self, monotonic: float) -> None:
        """A new look, at `monotonic` seconds; what the last look did not ask for is forgotten."""
        self._seen = {key: seen for key, seen in self._seen.items() if seen.look == self._look}
        self._before = self._now if self._look else None
        self._now = monotonic
        self._look += 1

    def of(self, key: Hashable, value: Hashable, wall_age: float) -> float:
        """Seconds since `value` became the value of `key`; `wall_age` is what the wall clocks say. Never negative."""
        seen = self._seen.get(key)
        if seen is None or seen.value != value:
            seen = self._seen[key] = _Seen(value, self._now - self._plausible(wall_age), self._look)
        seen.look = self._look
        return self._now - seen.since

    def _plausible(self, wall_age: float) -> float:
        if self._before is None:
            return max(0.0, wall_age)
        return wall_age if 0.0 <= wall_age <= self._now - self._before + USUAL_DELAY else 0.0
