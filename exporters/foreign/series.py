"""What a target's unknown samples become from pass to pass: bounded in number, ended when they vanish, counters with their start. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from exporters.collector import Foreign
from exporters.labels import clean
from exporters.sources.prometheus_text import Labels, Sample

REMEMBERED: Final = 3600.0  # seconds after which a series that has ended gives up its place: new names for ever are refused till then
_PARTS: Final = ("_total", "_bucket", "_count", "_sum")  # what a sample's name has more than its family's
_GROWS: Final = {"counter": ("", "_total"), "histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}
_Key = tuple[str, Labels]


class _Last(NamedTuple):
    value: float
    since: float | None


class SeriesBook:
    """One target's series. At most `most` are told apart within an hour; what is beyond is left out and counted."""

    def __init__(self, most: int, given: Mapping[str, str]) -> None:
        self._most = most
        self._given = {clean(k): clean(v) for k, v in given.items()}
        self._last: dict[_Key, tuple[bool, _Last]] = {}
        self._places: dict[_Key, float] = {}  # when a series was there last
        self._passed: float | None = None  # when the pass before was whole, and of the same process
        self._started: float | None = None
        self.dropped = 0

    def take(self, samples: Sequence[Sample], types: Mapping[str, str], now: float) -> list[Foreign]:
        """The series at `now` (seconds since 1970), and the ends of those that were there at the pass before."""
        created = {(s.name.removesuffix("_created"), s.labels): s.value for s in samples if s.name.endswith("_created")}
        self._note_start(samples)
        found: dict[_Key, tuple[bool, _Last]] = {}
        for sample in samples:
            if not math.isfinite(sample.value) or (sample.name.endswith("_created") and _is_created(sample.name, types)):
                continue
            key = (clean(sample.name), self._labelled(sample.labels))
            if key in found or not self._place(key, now):
                self.dropped += 1
                continue
            grows = _grows(sample.name, types)
            born = created.get((_family(sample.name, types), sample.labels)) if grows else None
            found[key] = grows, _Last(sample.value, self._since(key, sample.value, born, now) if grows else None)
        told = [Foreign(name, labels, last.value, grows, last.since) for (name, labels), (grows, last) in found.items()]
        ended = self._ended(found)
        self._last, self._passed = found, now
        return [*told, *ended]

    def lose(self) -> list[Foreign]:
        """The target is away: all its series end."""
        ended = self._ended({})
        self._last, self._passed = {}, None
        return ended

    def _ended(self, found: Mapping[_Key, object]) -> list[Foreign]:
        return [Foreign(key[0], key[1], None, grows) for key, (grows, _) in self._last.items() if key not in found]

    def _since(self, key: _Key, value: float, born: float | None, now: float) -> float | None:
        """When a counter began: as the page says; else between the pass before and this one where it is new on a page that
        was read whole, or fell. One that is seen with its page for the first time may be as old as the page's world."""
        if born is not None and 0 < born <= now + 1:
            return born
        before = self._last.get(key)
        if before is None or value < before[1].value:
            return self._passed
        return before[1].since

    def _note_start(self, samples: Iterable[Sample]) -> None:
        """A program that was started anew may show more than before, of things that are older than it."""
        started = next((s.value for s in samples if s.name == "process_start_time_seconds" and not s.labels), None)
        if started != self._started:
            self._passed = None
        self._started = started

    def _place(self, key: _Key, now: float) -> bool:
        if key not in self._places and len(self._places) >= self._most:
            self._places = {k: at for k, at in self._places.items() if now - at <= REMEMBERED}
            if len(self._places) >= self._most:
                return False
        self._places[key] = now
        return True

    def _labelled(self, labels: Labels) -> Labels:
        """The labels, clean; the target's own win, and what they hide stays as `exported_…`, as Prometheus has it."""
        own = {f"exported_{k}" if k in self._given else k: v for k, v in ((clean(k), clean(v)) for k, v in labels)}
        return tuple(sorted({**own, **self._given}.items()))


def _family(name: str, types: Mapping[str, str]) -> str:
    """The declared family of a sample, its own name where none is."""
    if name in types:
        return name
    return next((base for part in _PARTS if name.endswith(part) and (base := name.removesuffix(part)) in types), name)


def _is_created(name: str, types: Mapping[str, str]) -> bool:
    return types.get(name.removesuffix("_created")) in _GROWS or types.get(name.removesuffix("_created") + "_total") == "counter"


def _grows(name: str, types: Mapping[str, str]) -> bool:
    family = _family(name, types)
    return name.removeprefix(family) in _GROWS.get(types.get(family, ""), ())
