"""One leader a machine: a file lock, and a term that grows at each taking, so that what an earlier leader said is told apart."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import IO

from pipeline.errors import SurefootError

_LOOK = 0.1  # seconds between two looks at the lock


class TermUnreadable(SurefootError):
    """The file with the last term does not hold a number: guessing one could let two leaders share a term."""


@contextmanager
def lead(state_dir: Path, stopping: Event) -> Iterator[int | None]:
    """Wait until this process leads, and give its term; None where it is to stop first.

    Leadership ends with the block, or with the process, however it ends.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "leader.lock").open("a", encoding="utf-8") as lock:
        while not (mine := _taken(lock)) and not stopping.wait(_LOOK):  # to block in flock would be deaf to SIGTERM
            pass
        yield _next_term(state_dir / "leader.term") if mine else None


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _next_term(path: Path) -> int:
    text = path.read_text(encoding="utf-8").strip() if path.exists() else "0"
    if not text.isdigit():
        raise TermUnreadable(
            f"{path} holds {text[:20]!r} instead of a term; put a number in it that is above every term in the table actions"
        )
    term = int(text) + 1
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as f:
        f.write(f"{term}\n")
        f.flush()
        os.fsync(f.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return term
