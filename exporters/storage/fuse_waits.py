"""For how long FUSE servers have answered nothing, as far as that can be seen from the number of requests that wait. Pure."""

from collections.abc import Mapping


class FuseWaits:
    """Looks at the numbers again and again. A number that falls, or is 0, says that the server answers; one that stays or grows
    says nothing for certain: the server may answer and be asked again between two looks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}  # by mount point: the least since when it last fell, and when that was

    def stalled(self, waiting: Mapping[str, int], now: float) -> dict[str, float]:
        """Seconds, by mount point, at `now` (any clock's seconds); 0 where nothing waits or something was answered since the last look."""
        seen: dict[str, tuple[int, float]] = {}
        for point, number in waiting.items():
            before, since = self._seen.get(point, (0, now))
            seen[point] = (number, since if 0 < before <= number else now)
        self._seen = seen
        return {point: max(0.0, now - since) for point, (_, since) in seen.items()}
