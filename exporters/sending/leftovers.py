"""Requests that a sender could not deliver before its process ended, left on disk for whoever sends next on this node.

Only those that hold what cannot be measured again (events, transitions). Each file is one OTLP logs request, named
by its batch id, so that it is stored once whoever delivers it, and however often. Launchers and the agent may be
different users: the folder is open to all as /tmp is, and each takes only its own files; root takes everybody's.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUFFIX: Final = ".otlp"
LIMIT: Final = 4 << 20  # bytes of one file
_BATCH: Final = re.compile(r"[\w-]{1,64}", re.ASCII)  # what ingest takes for the id of a batch
MOST: Final = 1000  # files: a node on which nobody ever delivers must not fill its memory disk


def folder_of(ring_dir: Path) -> Path:
    """Where the senders of a node leave them: beside the rings, the one folder that agent and launchers share."""
    return ring_dir / "undelivered"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A request as it was to be sent: its body, not compressed, and its batch id."""

    path: Path
    batch: str
    body: bytes

    def forget(self) -> None:
        """Nothing more is to become of it."""
        with suppress(OSError):
            self.path.unlink()


def leave(folder: Path, batch: str, body: bytes) -> bool:
    """Leave a request; whether that could be done."""
    fresh = folder / f".{batch}.{os.getpid()}"
    try:
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(0o1777)
        if len(body) > LIMIT or len(os.listdir(folder)) >= MOST:
            return False
        fresh.write_bytes(body)
        fresh.replace(folder / (batch + SUFFIX))
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        return False
    return True


def left(folder: Path) -> Iterator[Leftover]:
    """What was left in `folder` that is ours to deliver, oldest first. What cannot be read, or is named as no batch is, is passed over."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith(SUFFIX) and _BATCH.fullmatch(entry.name.removesuffix(SUFFIX)):
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
    for _, path in sorted(found):
        body = _read(path)
        if body is not None:
            yield Leftover(Path(path), Path(path).name.removesuffix(SUFFIX), body)


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as f:
        info = os.fstat(fd)
        mine = info.st_uid == os.geteuid() or os.geteuid() == 0
        if not stat.S_ISREG(info.st_mode) or not mine or info.st_size > LIMIT:
            return None
        return f.read(LIMIT)
