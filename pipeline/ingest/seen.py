"""The ids of requests that are kept already, so that one whose answer was lost on its way is kept once."""

import threading
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final

CAPACITY: Final = 20_000  # ids; senders repeat a request within minutes


class Verdict(Enum):
    """What to do with a request."""

    NEW = "new"  # keep it
    KEPT = "kept"  # it is kept: say so again
    BUSY = "busy"  # its first copy is being kept right now, and may still fail


class Seen:
    """The last `capacity` ids. Those of requests that left the spool are in the file at `path`."""

    def __init__(self, path: Path, capacity: int = CAPACITY) -> None:
        self._path = path
        self._capacity = capacity
        self._lock = threading.Lock()
        self._ids: dict[str, bool] = {}  # id -> whether it is kept; oldest first
        if path.exists():
            self.load(path.read_text(encoding="utf-8", errors="replace").splitlines())
        self._rewrite()

    def load(self, ids: Iterable[str]) -> None:
        """Takes ids over from what an earlier process left."""
        with self._lock:
            self._ids.update(dict.fromkeys(filter(None, ids), True))
            self._shorten()

    def begin(self, batch: str) -> Verdict:
        """What to do with the request of this id; after NEW either `keep` or `forget` must follow."""
        with self._lock:
            if batch in self._ids:
                return Verdict.KEPT if self._ids[batch] else Verdict.BUSY
            self._ids[batch] = False
            self._shorten()
            return Verdict.NEW

    def keep(self, batch: str) -> None:
        """The request is on disk."""
        with self._lock:
            self._ids[batch] = True

    def forget(self, batch: str) -> None:
        """The request could not be kept: its sender may try again."""
        with self._lock:
            self._ids.pop(batch, None)

    def leave(self, batches: Iterable[str]) -> None:
        """Notes ids whose requests leave the spool; called before they do.

        Raises OSError where the disk refuses.
        """
        lines = [f"{batch}\n" for batch in batches if batch]
        with self._lock:
            with self._path.open("a", encoding="utf-8") as f:
                f.writelines(lines)
            self._lines += len(lines)
            crowded = self._lines > 2 * self._capacity
        if crowded:
            self._rewrite()

    def _shorten(self) -> None:
        while len(self._ids) > self._capacity:
            self._ids.pop(next(iter(self._ids)))

    def _rewrite(self) -> None:
        with self._lock:
            kept = [batch for batch, is_kept in self._ids.items() if is_kept]
            fresh = self._path.with_name(self._path.name + ".new")
            fresh.write_text("".join(f"{batch}\n" for batch in kept), encoding="utf-8")
            fresh.replace(self._path)
            self._lines = len(kept)
