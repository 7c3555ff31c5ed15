"""Files that one process at a time may own, whatever ends it."""

import fcntl
import os
from pathlib import Path
from typing import IO


class AlreadyOwned(Exception):
    """Another process owns the file. `owner` is its id, "unknown" where it has not written it yet."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"owned by process {owner}")
        self.owner = owner


def own(path: Path) -> IO[str]:
    """The file, ours until it is closed or the process ends, however it ends; it holds our process id meanwhile.

    Raises AlreadyOwned where another has it, OSError where it cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="ascii", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            file.seek(0)
            owner = file.read(20).strip()
        raise AlreadyOwned(owner if owner.isdigit() else "unknown") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
