"""The page as a file for another exporter's textfile collector: replaced whole, without times, gone when it would be stale."""

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "surefoot.prom"
_log = logging.getLogger(__name__)


def write(folder: Path, text: str) -> bool:
    """Replaces the file in `folder` with `text`; an empty one, or one that cannot be written, leaves none. True where it is there."""
    path, fresh = folder / NAME, folder / f".{NAME}.{os.getpid()}"  # another exporter reads only what ends in .prom
    try:
        if not text:
            path.unlink(missing_ok=True)
            return False
        with fresh.open("w", encoding="utf-8", errors="replace") as f:
            f.write(text)
        fresh.chmod(0o644)  # the other exporter is another user
        fresh.replace(path)
    except OSError as e:
        _log.debug("cannot write %s: %s", path, e)
        for one in (fresh, path):
            with suppress(OSError):
                one.unlink()
        return False
    return True


class TextFile:
    """Writes what it was given last to `folder`, in a thread of its own: a file system that hangs holds nobody up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._text: str | None = None
        self._wake, self._closing = threading.Event(), threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._work, name="textfile", daemon=True)
        self._thread.start()

    def put(self, text: str) -> None:
        """Has `text` written; returns at once."""
        self._text = text
        self._wake.set()

    def close(self, timeout: float = 1.0) -> None:
        """Removes the file, which nobody would renew; waits at most `timeout` seconds for that."""
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout)

    def _work(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            text, self._text = self._text, None
            if text is not None and not write(self._folder, text) and text and not self._complained:
                self._complained = True
                _log.warning("cannot write %s: its readings are missing there", self._folder / NAME)
        write(self._folder, "")
