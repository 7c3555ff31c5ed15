"""When what waits goes to disk, and when what is there is tried again."""

from collections.abc import Callable, Mapping, Sequence
from random import uniform
from typing import Final
from uuid import uuid4

from tenacity import RetryCallState

from exporters.sending.buffer import DiskBuffer, Kept
from exporters.sending.outgoing import Item, Outgoing, Signal
from pipeline.clock import monotonic

AFTER: Final = 2.0  # seconds that a request is tried before it is put by
EVERY: Final = 10.0  # seconds between two writes of what can be measured again, and after one that the disk refused
EVERY_LASTING: Final = 1.0  # the same of what cannot
LONGEST: Final = 5.0  # seconds between two tries of what is on disk; the nodes of a cluster do not all come at once
FULL: Final = 1 << 20  # bytes in memory that are written whatever the time

Body = Callable[[Sequence[Item]], bytes]


class Backlog:
    """The disk buffer of a sender whose waiting parts are in `queue`, and whose requests `body` makes. For one thread."""

    def __init__(self, buffer: DiskBuffer, queue: Outgoing, body: Body, clock: Callable[[], float] = monotonic) -> None:
        self.buffer = buffer
        self._queue, self._body, self._clock = queue, body, clock
        self._written_at = self._lasting_at = float("-inf")
        self._refused_until = self._try_at = float("-inf")
        self._tries = 0

    @property
    def waits(self) -> bool:
        """Is anything on disk?"""
        return len(self.buffer) > 0

    def enough(self, state: RetryCallState) -> bool:
        """Has a request been tried for long enough to be put by?"""
        return self._clock() >= self._refused_until and (state.seconds_since_start or 0.0) >= AFTER

    def put(self, batch: str, items: Sequence[Item]) -> bool:
        """Puts a request by under its id; whether the disk took it."""
        kinds: dict[str, int] = {}
        for item in items:
            kinds[item.kind] = kinds.get(item.kind, 0) + 1
        if self.buffer.put(items[0].signal, batch, self._body(items), kinds, lasting=any(item.lasting for item in items)):
            return True
        self._refused_until = self._clock() + EVERY
        return False

    def spill(self, *, all_of_it: bool = False) -> bool:
        """Puts by what waits in memory, where it is time or `all_of_it` is to go; True where something went."""
        now = self._clock()
        if now < self._refused_until and not all_of_it:
            return False
        due = all_of_it or now >= self._written_at + EVERY or self._queue.bytes >= FULL
        if due:
            self._written_at = now
        elif not self._queue.lasting or now < self._lasting_at + EVERY_LASTING:
            return False
        self._lasting_at = now
        went = False
        while (due or self._queue.lasting) and (items := self._queue.take(FULL)):
            if not self.put(uuid4().hex, items):
                self._queue.put_back()
                break
            self._queue.settle()
            went = True
        return went

    def next(self) -> Kept | None:
        """What is to be tried now; None where nothing is, or it is not yet time."""
        return self.buffer.oldest() if self._clock() >= self._try_at else None

    def taken(self, kept: Kept) -> None:
        """Ingest took it, or never will."""
        self.buffer.forget(kept)
        self._tries = 0

    def away(self, wait: float | None) -> None:
        """Ingest did not take it; it asks for `wait` seconds, where it says anything."""
        self._tries = min(self._tries + 1, 10)
        self._try_at = self._clock() + (min(LONGEST, 0.2 * 2**self._tries) * uniform(0.5, 1.0) if wait is None else wait)


def signal_of(kept: Kept) -> tuple[Signal, Mapping[str, str]]:
    """The service that it goes to, and its headers."""
    return kept.waiting.signal, {"X-Surefoot-Batch": kept.waiting.batch, "Content-Encoding": "gzip"}
