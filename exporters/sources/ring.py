"""Reads the ring file that a training process writes. The file is somebody else's: nothing in it is believed unchecked.

It is read with pread and never mapped: its owner may cut it short at any time, which under a mapping
would kill the agent (SIGBUS).
"""

import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.errors import InputError
from surefoot.hook import layout
from surefoot.hook.layout import CRC, CRC_OFFSET, HEADER, HEADER_SIZE, SLOT_HEAD, SLOT_SIZE, LiveCell

MAX_CAPACITY: Final = 1 << 16
MAX_RANK: Final = 1 << 24
TRIES: Final = 3  # looks at a torn record before it is given up
_LIVE_TRIES: Final = 3
_WORDS: Final = 64  # bytes at WRITTEN_OFFSET that hold the live words: read twice, since a read is not atomic


@dataclass(frozen=True, slots=True)
class Header:
    """Who writes the ring. `created` is ns since 1970."""

    run: str
    attempt: str
    node: str
    rank: int
    local_rank: int
    world_size: int
    pid: int
    capacity: int
    created: int

    @property
    def size(self) -> int:
        """Bytes that the file must have."""
        return HEADER_SIZE + self.capacity * SLOT_SIZE


@dataclass(frozen=True, slots=True)
class Batch:
    """What is new: whole slots in order, each with its sequence number; records lost since the last look;
    the live cell (None: torn this time); whether all that was written has been read; whether the monitor was closed in good order."""

    slots: list[tuple[int, bytes]]
    lost: int
    live: LiveCell | None
    complete: bool
    closed: bool


class RingReader:
    """One open ring. `cursor` is the sequence number of the next record to read."""

    def __init__(self, fd: int, header: Header, inode: int) -> None:
        self.header = header
        self.inode = inode
        self.cursor = 0
        self._fd = fd
        self._torn = 0

    @classmethod
    def open(cls, path: Path, owner_ok: Callable[[int, int], bool]) -> "RingReader":
        """The ring in `path`; `owner_ok(uid, pid)` says whether that user's file may speak for that process.

        Raises InputError with the reason for a file that is no ring of ours, OSError for one that cannot be opened.
        """
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise InputError("not a regular file")
            header = parse_header(os.pread(fd, HEADER.size, 0))
            if found.st_size != header.size:
                raise InputError(f"{found.st_size} bytes long, must be {header.size}")
            if not owner_ok(found.st_uid, header.pid):
                raise InputError(f"owned by user {found.st_uid}, who does not run process {header.pid}")
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, header, found.st_ino)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def read(self) -> Batch:
        """What was written since the last call.

        Raises InputError where the file has been cut short or its header no longer makes sense.
        """
        head, live = self._head()
        written = _u64(head, layout.WRITTEN_OFFSET)
        if not self.cursor <= written < 1 << 62:
            raise InputError(f"{written} records written after {self.cursor} were read")
        lost = max(0, written - self.header.capacity - self.cursor)
        self.cursor += lost
        slots: list[tuple[int, bytes]] = []
        while self.cursor < written:
            slot = self._slot(self.cursor)
            if slot is None and self._torn < TRIES:
                break
            if slot is None:
                lost += 1
            else:
                slots.append((self.cursor, slot))
            self.cursor += 1
            self._torn = 0
        return Batch(slots, lost, live, self.cursor == written, _u64(head, layout.CLOSED_OFFSET) != 0)

    def _head(self) -> tuple[bytes, LiveCell | None]:
        for _ in range(_LIVE_TRIES):
            head = os.pread(self._fd, HEADER_SIZE, 0)
            if len(head) != HEADER_SIZE:
                raise InputError("cut short")
            live = layout.read_live(memoryview(head))
            if live and os.pread(self._fd, _WORDS, layout.WRITTEN_OFFSET) == head[layout.WRITTEN_OFFSET : layout.WRITTEN_OFFSET + _WORDS]:
                return head, live
        return head, None

    def _slot(self, sequence: int) -> bytes | None:
        """The slot of record `sequence`, None while (or because) it holds another one or is half written."""
        slot = os.pread(self._fd, SLOT_SIZE, HEADER_SIZE + sequence % self.header.capacity * SLOT_SIZE)
        if len(slot) != SLOT_SIZE:
            raise InputError("cut short")
        if CRC.unpack_from(slot, CRC_OFFSET)[0] != zlib.crc32(slot[:CRC_OFFSET]):
            self._torn += 1
            return None
        if SLOT_HEAD.unpack_from(slot)[0] != sequence + 1:
            self._torn = TRIES  # whole, but another record: this one has been overwritten
            return None
        return slot


def parse_header(data: bytes) -> Header:
    """The header that begins a ring. Raises InputError naming what is wrong."""
    if len(data) < HEADER.size:
        raise InputError("shorter than a header")
    magic, version, header_size, slot_size, capacity, pid, rank, local_rank, world_size, created, run, attempt, node = HEADER.unpack_from(
        data
    )
    if magic != layout.MAGIC:
        raise InputError("not a Surefoot ring")
    if (version, header_size, slot_size) != (layout.VERSION, HEADER_SIZE, SLOT_SIZE):
        raise InputError(f"layout version {version} with slots of {slot_size}, this agent reads version {layout.VERSION}")
    if not 0 < capacity <= MAX_CAPACITY or rank >= MAX_RANK or not 0 < pid < 1 << 31:
        raise InputError(f"capacity {capacity}, rank {rank} or pid {pid} cannot be")
    words = [_word(name, text) for name, text in (("run", run), ("attempt", attempt), ("node", node))]
    if not words[1]:
        raise InputError("no attempt id")
    return Header(words[0], words[1], words[2], rank, local_rank, world_size, pid, capacity, created)


def _u64(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")


def _word(name: str, data: bytes) -> str:
    try:
        text = data.rstrip(b"\0").decode()
    except UnicodeDecodeError as e:
        raise InputError(f"its {name} is not UTF-8") from e
    if not text.isprintable():
        raise InputError(f"its {name} holds control characters")
    return text
