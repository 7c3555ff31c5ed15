"""Calls that may never return, each in a thread of its own, at most one at a time for a key: what hangs costs one thread, for its key."""

import threading
from collections.abc import Callable, Collection
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from pipeline.clock import monotonic

T = TypeVar("T")


class Calls(Generic[T]):
    """Not for several threads: one begins calls and waits for them."""

    def __init__(self, name: str, clock: Callable[[], float] = monotonic) -> None:
        self._name, self._clock = name, clock
        self._since: dict[str, float] = {}  # keys with a call under way: since when
        self._done: SimpleQueue[tuple[str, T | Exception]] = SimpleQueue()

    def begin(self, key: str, call: Callable[[], T]) -> bool:
        """Begins `call`; False where the one before under this key has not returned. What that one gives at last is thrown away."""
        self._discard()
        if key in self._since:
            return False
        self._since[key] = self._clock()
        threading.Thread(target=self._work, args=(key, call), name=f"{self._name}-{key}", daemon=True).start()
        return True

    def wait(self, keys: Collection[str], until: float) -> dict[str, T | Exception]:
        """What the calls that were begun for `keys` gave, or raised, by `until` (monotonic seconds); without those that still hang."""
        found: dict[str, T | Exception] = {}
        left = set(keys)
        while left:
            try:
                key, outcome = self._done.get(timeout=max(0.0, until - self._clock()))
            except Empty:
                break
            self._since.pop(key, None)
            if key in left:
                found[key] = outcome
                left.discard(key)
        return found

    def hung(self, key: str) -> float | None:
        """For how many seconds the call of `key` has been under way, None where there is none."""
        since = self._since.get(key)
        return None if since is None else self._clock() - since

    @property
    def idle(self) -> bool:
        """Is no call under way?"""
        self._discard()
        return not self._since

    def _discard(self) -> None:
        """Takes note of calls that returned after nobody waited for them any more."""
        try:
            while True:
                self._since.pop(self._done.get_nowait()[0], None)
        except Empty:
            pass

    def _work(self, key: str, call: Callable[[], T]) -> None:
        try:
            outcome: T | Exception = call()
        except Exception as e:  # noqa: BLE001 - handed to who waits for it
            outcome = e
        self._done.put((key, outcome))
