"""Counters that fall. Once in a while one begins anew; one that does so again and again is no counter, and no rate may be made of it."""

from collections.abc import Mapping
from typing import Final

from exporters.collector import Reading
from pipeline.catalog.metrics import Kind

RESETS: Final = 3  # falls that resets of a device, or reloads of its driver, may explain


class Falls:
    """Keeps the counters of one kind of device."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], dict[str, float]] = {}
        self._falls: dict[tuple[str, ...], dict[str, int]] = {}

    def believed(self, reading: Reading) -> tuple[dict[str, float | int | None], int]:
        """The reading's values without the counters that fell more than RESETS times; and how many those are."""
        key = tuple(reading.identity.values())
        last, falls = self._last.setdefault(key, {}), self._falls.setdefault(key, {})
        values = dict(reading.values)
        for metric in reading.family.metrics:
            value = values.get(metric.name)
            if metric.kind is not Kind.COUNTER or value is None:
                continue
            if value < last.get(metric.name, value):
                falls[metric.name] = falls.get(metric.name, 0) + 1
            last[metric.name] = value
            if falls.get(metric.name, 0) > RESETS:
                values[metric.name] = None
        return values, sum(count > RESETS for count in falls.values())

    def forget_but(self, kept: Mapping[tuple[str, ...], object]) -> None:
        """Drops what is known of other devices than `kept`."""
        for key in self._last.keys() - kept.keys():
            del self._last[key], self._falls[key]
