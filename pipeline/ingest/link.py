"""A connection to the store that is made when it is first needed, and again after it could not be made."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from pipeline.clock import monotonic
from pipeline.errors import StoreError, StoreUnavailable

Connection = TypeVar("Connection")
PAUSE: Final = 0.25  # seconds between two tries


class Link(Generic[Connection]):
    """Gives the connection that `connect` makes, to any number of threads."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._error: StoreError | None = None
        self._again_at = 0.0

    def get(self) -> Connection:
        """The connection. Raises StoreUnavailable where it cannot be made now; a wrong password may be put right."""
        with self._lock:
            if self._connection is None:
                if self._error is not None and monotonic() < self._again_at:
                    raise StoreUnavailable(str(self._error), self._error.code)
                try:
                    self._connection = self._connect()
                except StoreError as e:
                    self._error, self._again_at = e, monotonic() + PAUSE
                    raise StoreUnavailable(str(e), e.code) from e
            return self._connection
