"""What waits to be sent: bounded by bytes; the oldest goes first when it is full, what cannot be measured again last."""

import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

OVERHEAD: Final = 128  # bytes that Python keeps around each item, so that many small ones are bounded too


class Signal(StrEnum):
    """The two OTLP services that are used; the value is the path of each."""

    LOGS = "/v1/logs"
    METRICS = "/v1/metrics"


@dataclass(frozen=True, slots=True)
class Item:
    """One encoded part of a request. `kind` names it in counts; a `lasting` one is dropped last."""

    signal: Signal
    kind: str
    data: bytes
    lasting: bool = False
    number: int = 0


class Outgoing:
    """A thread-safe queue of at most `limit` bytes (its items' own and OVERHEAD each)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._lasting: deque[Item] = deque()
        self._logs: deque[Item] = deque()
        self._metrics: deque[Item] = deque()
        self._taken: list[Item] = []
        self._bytes = 0
        self._number = 0
        self._dropped: Counter[str] = Counter()

    def put(self, signal: Signal, kind: str, data: bytes, *, lasting: bool = False) -> None:
        """Adds one part; makes room by dropping the oldest ordinary parts, then the oldest lasting ones."""
        with self._lock:
            self._number += 1
            item = Item(signal, kind, data, lasting, self._number)
            self._waiting(item).append(item)
            self._bytes += _size(item)
            while self._bytes > self.limit and (self._lasting or self._logs or self._metrics):
                self._drop_oldest()

    def take(self, size: int) -> list[Item]:
        """The next parts of one signal, lasting ones first, of at most `size` bytes together (one part may be more).

        They count as waiting until `settle` is called.
        """
        with self._lock:
            batch: list[Item] = []
            room = size
            sources = (self._lasting, self._logs) if self._lasting or self._logs else (self._metrics,)
            for source in sources:
                while source and (not batch or len(source[0].data) <= room):
                    batch.append(source.popleft())
                    room -= len(batch[-1].data)
            self._taken = batch
            return batch

    def settle(self) -> None:
        """What was taken last is delivered or given up."""
        with self._lock:
            self._bytes -= sum(map(_size, self._taken))
            self._taken = []

    def put_back(self) -> None:
        """What was taken last waits again, before all else of its sort."""
        with self._lock:
            for item in reversed(self._taken):
                self._waiting(item).appendleft(item)
            self._taken = []

    def give_up(self) -> None:
        """What was taken last is dropped."""
        self._dropped.update(item.kind for item in self._taken)
        self.settle()

    @property
    def lasting(self) -> bool:
        """Does anything wait that cannot be measured again?"""
        return bool(self._lasting)

    def count_dropped(self, items: Iterable[Item]) -> None:
        """Counts parts that were taken and could not be delivered."""
        self._dropped.update(item.kind for item in items)

    @property
    def bytes(self) -> int:
        """Bytes waiting now, and being sent."""
        return self._bytes

    @property
    def last(self) -> int:
        """The number of the part put last; they count from 1."""
        return self._number

    @property
    def settled(self) -> int:
        """All parts up to this number are delivered or given up."""
        with self._lock:
            waiting = [source[0].number for source in (self._lasting, self._logs, self._metrics) if source]
            return min([*waiting, *(item.number for item in self._taken), self._number + 1]) - 1

    @property
    def dropped(self) -> dict[str, int]:
        """How many parts were dropped since the start, by kind."""
        return dict(self._dropped)

    def _waiting(self, item: Item) -> deque[Item]:
        return self._lasting if item.lasting else self._logs if item.signal is Signal.LOGS else self._metrics

    def _drop_oldest(self) -> None:
        ordinary = [waiting for waiting in (self._logs, self._metrics) if waiting]
        source = min(ordinary, key=lambda waiting: waiting[0].number) if ordinary else self._lasting
        item = source.popleft()
        self._bytes -= _size(item)
        self._dropped[item.kind] += 1


def _size(item: Item) -> int:
    return len(item.data) + OVERHEAD
