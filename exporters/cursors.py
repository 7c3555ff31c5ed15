"""How far the rings have been read and delivered, kept over a restart of the agent."""

import json
import logging
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MAX_MARKS: Final = 64
_log = logging.getLogger(__name__)


class Cursors:
    """Cursors in the file `path`. Only those whose records are settled are written, so that a killed agent sends again
    what was not delivered. Without a file that can be read or written it works on, and rings are read anew after a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: deque[tuple[int, dict[str, int]]] = deque()
        self._written: dict[str, int] = {}
        self._complained = False

    def load(self) -> dict[str, int]:
        """What was saved last; empty where there is nothing usable."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        self._written = {key: value for key, value in found.items() if type(value) is int and value >= 0}
        return dict(self._written)

    def mark(self, number: int, cursors: Mapping[str, int]) -> None:
        """All records before `cursors` are in the sender's parts up to `number`."""
        if not self._marks or (self._marks[-1][1] != cursors and len(self._marks) < _MAX_MARKS):
            self._marks.append((number, dict(cursors)))

    def settle(self, number: int) -> None:
        """The sender's parts up to `number` are settled: saves the cursors that are now known to be delivered."""
        newest = None
        while self._marks and self._marks[0][0] <= number:
            newest = self._marks.popleft()[1]
        if newest is not None and newest != self._written:
            self._save(newest)

    def _save(self, cursors: dict[str, int]) -> None:
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps(cursors), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as e:
            if not self._complained:
                _log.warning("cannot keep %s: %s; after a restart rings are read again from their beginning", self._path, e.strerror)
            self._complained = True
        else:
            self._written, self._complained = cursors, False
