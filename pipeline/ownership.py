"""Files that one process at a time may own, whatever ends it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyOwned(Exception):
    """Another process owns the file. `owner` is its id, "unknown" where it has not written it yet."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"owned by process {owner}")
        self.owner = owner


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own the file, which holds our process id meanwhile. It ends with the process, however the process ends.

    Raises AlreadyOwned where another has it, OSError where it cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(20).strip()
            raise AlreadyOwned(owner if owner.isdigit() else "unknown") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
