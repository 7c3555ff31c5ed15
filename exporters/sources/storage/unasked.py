"""For a saved tree or another machine's: its mounts and disks are not this machine's, so nobody is asked how they are."""

import errno
import os
from typing import Any

from exporters.sources.storage.probes import DENIED, Answer, Usage


class NoProbes:
    """Probes that say at once that nothing can be said: what is asked about is unknown, neither well nor hung."""

    def __init__(self) -> None:
        self._open: list[str] = []

    def ask(self, path: str) -> None:
        """Asks nobody."""
        self._open.append(path)

    def answers(self, timeout: float) -> list[Answer[Any]]:
        """That it could not be asked."""
        found, self._open = [Answer[Any](path, 0.0, DENIED, None) for path in self._open], []
        return found

    def close(self) -> None:
        """There is nothing to let go of."""


def no_usage(path: str) -> Usage:
    """Raises OSError: it could not be asked."""
    raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)
