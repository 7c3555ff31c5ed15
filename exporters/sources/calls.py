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
        self._given_up: set[str] = set()  # those of them that nobody waits for any more
        self._outcomes: dict[str, T | Exception] = {}
        self._done: SimpleQueue[tuple[str, T | Exception]] = SimpleQueue()

    def begin(self, key: str, call: Callable[[], T]) -> bool:
        """Begins `call`; False where the one before under this key has not returned. What that one gives at last is thrown away."""
        self._receive(0.0)
        if key in self._since:
            return False
        self._since[key] = self._clock()
        threading.Thread(target=self._work, args=(key, call), name=f"{self._name}-{key}", daemon=True).start()
        return True

    def wait(self, keys: Collection[str], until: float) -> dict[str, T | Exception]:
        """What the calls that were begun for `keys` gave, or raised, by `until` (monotonic seconds); without those that still hang."""
        while not self._outcomes.keys() >= set(keys) and self._receive(until - self._clock()):
            pass
        found = {key: self._outcomes.pop(key) for key in keys if key in self._outcomes}
        self._given_up |= set(keys) - found.keys()
        return found

    def hung(self, key: str) -> float | None:
        """For how many seconds the call of `key` has been under way, None where there is none."""
        since = self._since.get(key)
        return None if since is None else self._clock() - since

    @property
    def idle(self) -> bool:
        """Is no call under way?"""
        self._receive(0.0)
        return not self._since

    def _receive(self, timeout: float) -> bool:
        """Takes in what has returned, after waiting at most `timeout` seconds for the first; False where nothing has."""
        try:
            self._take(*self._done.get(timeout=max(0.0, timeout)))
        except Empty:
            return False
        while not self._done.empty():
            self._take(*self._done.get())
        return True

    def _take(self, key: str, outcome: T | Exception) -> None:
        self._since.pop(key, None)
        if key in self._given_up:
            self._given_up.discard(key)
        else:
            self._outcomes[key] = outcome

    def _work(self, key: str, call: Callable[[], T]) -> None:
        try:
            outcome: T | Exception = call()
        except Exception as e:  # noqa: BLE001 - handed to who waits for it
            outcome = e
        self._done.put((key, outcome))
