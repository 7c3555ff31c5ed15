"""Where threads and signal handlers leave things for the main loop, which wakes at once."""

import os
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A thread-safe queue that a selector can wait for (`fileno`). Putting is safe in a signal handler."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Readable while there may be something."""
        return self._fd

    def put(self, item: T) -> None:
        """Adds one and wakes the loop."""
        self._items.append(item)
        os.eventfd_write(self._fd, 1)

    def take(self) -> list[T]:
        """All that there is, in order."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return []
        taken: list[T] = []
        while self._items:
            taken.append(self._items.popleft())
        return taken
