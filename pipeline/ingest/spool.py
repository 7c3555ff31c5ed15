"""A crash-safe queue of entries in append-only files, for what was acknowledged and is not yet stored.

A *segment* is a file of frames: an entry, or a mark that ends a *chunk* of entries. What a chunk holds is
fixed once its mark is on disk, what a segment holds once it is closed; after a crash the open segment is
closed as it is. So whoever stores a chunk or a segment under its name stores the same rows on every try.
Names are never used twice. A torn frame at the end of a file was never acknowledged, and is cut.

`append` returns once its entry is on disk; calls that wait at the same time share one fsync. Standard
library only.
"""

import fcntl
import os
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pipeline.errors import SpoolFull, SurefootError
from pipeline.ingest.frames import ENTRY, MARK, frame_of, frames
from pipeline.sizes import bound, size

Item = TypeVar("Item")
SUFFIX: Final = ".segment"
_MARK: Final = frame_of(MARK, b"")
HELD_BYTES: Final = 16 << 20  # of entries whose items are kept in memory; older ones are read back from disk


def _one_chunk() -> list[list[Any]]:
    return [[]]


@dataclass(slots=True, eq=False)
class Segment(Generic[Item]):
    """A file of the spool. `chunks` are the items of its entries, None where they must be read from the file."""

    path: Path
    size: int = 0
    fd: int | None = None  # while open for writing
    synced: int = 0
    syncing: bool = False
    failed: bool = False
    marked: int = 0  # chunks that have their mark
    dirty: bool = False  # entries after the last mark
    chunks: list[list[Item]] | None = field(default_factory=_one_chunk)
    held: int = 0  # bytes of the entries whose items are in `chunks`

    @property
    def name(self) -> str:
        """Unique for ever."""
        return self.path.stem


@dataclass(frozen=True, slots=True)
class Chunk(Generic[Item]):
    """Entries `index` of a segment, from one mark to the next; `name` is unique for ever."""

    segment: Segment[Item]
    index: int

    @property
    def name(self) -> str:
        """What the chunk's rows are stored under."""
        return f"{self.segment.name}.{self.index}"


@dataclass(frozen=True, slots=True)
class Ticket(Generic[Item]):
    """Where an entry ends, to wait for its being on disk."""

    segment: Segment[Item]
    end: int


class Spool(Generic[Item]):
    """The spool in `directory`, of at most `cap_bytes`. What an earlier process left is in `closed` from the start.

    An entry is bytes and an item: what the bytes mean, kept in memory for whoever takes the entry out.
    Raises SurefootError where another process uses the directory. All methods may be called from any thread.
    """

    def __init__(self, directory: Path, cap_bytes: int) -> None:
        self._directory = directory
        self._cap = cap_bytes
        directory.mkdir(parents=True, exist_ok=True)
        self._lock_fd = _own(directory)
        self._condition = threading.Condition()
        self._active: Segment[Item] | None = None
        self._sequence = 0
        self._held = 0
        self.closed: list[Segment[Item]] = [Segment(p, p.stat().st_size, chunks=None) for p in sorted(directory.glob("[0-9]*-*" + SUFFIX))]
        for segment in self.closed:
            _sync_file(segment.path)  # its writer may have died before its last fsync
            segment.synced = segment.size

    # --- in ----------------------------------------------------------------------------------

    def put(self, payload: bytes, item: Item) -> Ticket[Item]:
        """Adds an entry, which is safe once `sync` has returned. Raises SpoolFull where it cannot be kept."""
        frame = frame_of(ENTRY, payload)
        with self._condition:
            if self.size + len(frame) + len(_MARK) > self._cap:  # its chunk's mark must fit too
                raise SpoolFull(f"the spool holds {size(self.size)} of at most {bound(self._cap)}; the store is behind")
            segment = self._open()
            self._write(segment, frame)
            segment.dirty = True
            self._hold(segment, item, len(payload))
            return Ticket(segment, segment.size)

    def sync(self, ticket: Ticket[Item]) -> None:
        """Returns once everything up to `ticket` is on disk. Raises SpoolFull where the disk refused."""
        segment = ticket.segment
        with self._condition:
            while segment.synced < ticket.end:
                if segment.failed:
                    raise SpoolFull("the disk under the spool refused to keep an entry")
                if segment.syncing or segment.fd is None:
                    self._condition.wait()
                else:
                    self._sync_all(segment, segment.fd)

    def _sync_all(self, segment: Segment[Item], fd: int) -> None:
        """One fsync for all that wait; the lock is given up meanwhile, so that others may write."""
        segment.syncing, target = True, segment.size
        self._condition.release()
        try:
            error = _fsync(fd)
        finally:
            self._condition.acquire()
            segment.syncing = False
        if error is None:
            segment.synced = target
        else:
            self._abandon(segment)
        self._condition.notify_all()

    # --- out ---------------------------------------------------------------------------------

    def mark(self) -> Chunk[Item] | None:
        """Ends the chunk of what was added since the last mark, durably; None where nothing was.

        Raises SpoolFull where the disk refused: nothing is ended then.
        """
        with self._condition:
            segment = self._active
            if segment is None or not segment.dirty:
                return None
            ticket, chunk = self._end_chunk(segment), Chunk(segment, segment.marked - 1)
        self.sync(ticket)
        return chunk

    def roll(self) -> Segment[Item] | None:
        """Closes the open segment and puts it at the end of `closed`; None where there is none."""
        with self._condition:
            segment = self._active
            if segment is None:
                return None
            self._condition.wait_for(lambda: not segment.syncing)
            if self._active is not segment or segment.fd is None:  # it failed meanwhile, and is closed
                return segment
            if _fsync(segment.fd) is not None:
                self._abandon(segment)
            else:
                segment.synced = segment.size
                self._close(segment)
            self._condition.notify_all()
            return segment

    def read(self, segment: Segment[Item]) -> list[list[bytes]]:
        """The payloads of a segment, chunk by chunk, from its file; a torn end is cut off."""
        chunks: list[list[bytes]] = [[]]
        good = 0
        data = segment.path.read_bytes()
        for kind, payload, end in frames(data):
            good = end
            if kind == MARK:
                chunks.append([])
            else:
                chunks[-1].append(payload)
        if good < len(data) and segment.fd is None:
            os.truncate(segment.path, good)
            with self._condition:
                segment.size = segment.synced = good
        return chunks

    def remove(self, segment: Segment[Item]) -> None:
        """Forgets a closed segment for good: all of it is stored."""
        segment.path.unlink(missing_ok=True)
        with self._condition:
            self.closed.remove(segment)
            self._forget(segment)

    # --- how it stands -----------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes on disk that are not stored yet."""
        active = self._active
        return sum(s.size for s in list(self.closed)) + (active.size if active else 0)

    def oldest(self) -> float | None:
        """Seconds since 1970 at which the oldest segment was begun; None where the spool is empty."""
        active = self._active
        names = [s.name for s in list(self.closed)[:1]] + ([active.name] if active else [])
        return int(names[0].split("-")[0]) / 1e9 if names else None

    def close(self) -> None:
        """Closes the open segment and lets another process use the directory."""
        self.roll()
        os.close(self._lock_fd)

    # --- inside, under the lock --------------------------------------------------------------

    def _open(self) -> Segment[Item]:
        if self._active is None:
            name = f"{time.time_ns():020d}-{self._sequence:06d}-{secrets.token_hex(4)}"
            self._sequence += 1
            path = self._directory / (name + SUFFIX)
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
                os.fsync(self._lock_fd)  # the lock's descriptor is the directory: the name is on disk now
            except OSError as e:
                raise SpoolFull(f"cannot begin a spool file: {e.strerror}") from e
            self._active = Segment(path, fd=fd)
        return self._active

    def _write(self, segment: Segment[Item], frame: bytes) -> None:
        """Writes the whole frame, or raises SpoolFull and leaves none of it."""
        assert segment.fd is not None
        left = memoryview(frame)
        try:
            while left:
                left = left[os.write(segment.fd, left) :]
        except OSError as e:
            self._cut(segment, segment.size)
            if segment.failed:
                self._close(segment)
            raise SpoolFull(f"cannot write the spool: {e.strerror}") from e
        segment.size += len(frame)

    def _end_chunk(self, segment: Segment[Item]) -> Ticket[Item]:
        self._write(segment, _MARK)
        segment.marked += 1
        segment.dirty = False
        if segment.chunks is not None:
            segment.chunks.append([])
        return Ticket(segment, segment.size)

    def _hold(self, segment: Segment[Item], item: Item, size: int) -> None:
        if segment.chunks is None:
            return
        self._held += size
        segment.held += size
        segment.chunks[-1].append(item)
        if self._held > HELD_BYTES:
            self._forget(segment)
            for closed in self.closed:
                self._forget(closed)

    def _forget(self, segment: Segment[Item]) -> None:
        segment.chunks = None
        self._held -= segment.held
        segment.held = 0

    def _abandon(self, segment: Segment[Item]) -> None:
        """After a failed fsync nobody knows what of the rest is on disk: keep what is known, refuse the rest."""
        segment.failed = True
        self._cut(segment, segment.synced)
        segment.size = segment.synced
        self._forget(segment)
        self._close(segment)

    def _close(self, segment: Segment[Item]) -> None:
        if segment.fd is not None:
            os.close(segment.fd)
            segment.fd = None
        if self._active is segment:
            self._active = None
            self.closed.append(segment)

    def _cut(self, segment: Segment[Item], size: int) -> None:
        assert segment.fd is not None
        try:
            os.ftruncate(segment.fd, size)
        except OSError:  # the frame stays torn: what follows it could not be read back, so nothing may follow
            segment.failed = True


def _fsync(fd: int) -> OSError | None:
    try:
        os.fdatasync(fd)
    except OSError as e:
        return e
    return None


def _sync_file(path: Path) -> None:
    with path.open("rb") as f:
        os.fdatasync(f.fileno())


def _own(directory: Path) -> int:
    """A descriptor of the directory that holds its lock until it is closed."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        os.close(fd)
        raise SurefootError(f"another process uses the spool {directory}; stop it first") from e
    return fd
