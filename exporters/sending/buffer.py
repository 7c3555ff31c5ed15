"""Requests that wait on disk while ingest is away: bounded in bytes, files and age, given back in the order in which they came.

A file is one OTLP request under its batch id, so that it is stored once however often it is sent. It is written beside its place and
renamed into it: what is there survives the end of the process, whatever ends it. Requests with what cannot be measured again (events,
transitions) are also synced to disk, file and folder, before they count as kept; the others survive a kill, not a loss of power. What
a loss of power has left half-written is told by gzip's checksum, dropped and counted. Where there is no room for all of it, they go last.
"""

import gzip
import json
import logging
import os
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from exporters.sending.outgoing import Signal
from pipeline.clock import Clock, utcnow
from pipeline.sizes import bound

MOST: Final = 20_000  # files
SPARE: Final = 256 << 20  # bytes that others keep on the file system: waiting telemetry is not what fills it
DAMAGED: Final = "damaged"  # the kind under which a file is counted that cannot be read
_LARGEST: Final = 16 << 20  # bytes of a request, not compressed
_BLOCK: Final = 4096  # what a file system gives out
_SUFFIX: Final = ".otlp.gz"
_SORTS: Final = {"l": (Signal.LOGS, False), "m": (Signal.METRICS, False), "e": (Signal.LOGS, True), "x": (Signal.METRICS, True)}
_LETTERS: Final = {sort: letter for letter, sort in _SORTS.items()}
_log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """A file: its place in the order, when it was written (seconds since 1970), the bytes that it takes, and whether it goes last."""

    number: int
    at: float
    signal: Signal
    batch: str
    size: int
    lasting: bool

    @property
    def name(self) -> str:
        """Of the file."""
        return f"{self.number:016d}-{self.at:.0f}-{_LETTERS[self.signal, self.lasting]}-{self.batch}{_SUFFIX}"


class Kept(NamedTuple):
    """A request as it is to be sent: `body` is gzip; `kinds` counts its parts."""

    waiting: Waiting
    body: bytes
    kinds: Mapping[str, int]


class DiskBuffer:
    """At most `limit` bytes in `folder`, none older than `max_age` seconds; the oldest goes first, what lasts last, and is counted.

    For one thread, but for `size`, `age` and `dropped`. `spare` bytes stay free on the file system. No method raises for what the
    disk does.
    """

    def __init__(self, folder: Path, limit: int, max_age: float, *, spare: int = SPARE, clock: Clock = utcnow) -> None:
        self._folder, self._limit, self._max_age, self._spare = folder, limit, max_age, spare
        self._clock = clock
        self._ordinary: deque[Waiting] = deque()
        self._lasting: deque[Waiting] = deque()
        self._bytes = 0
        self._number = 0
        self._dropped: Counter[str] = Counter()
        self._complained = False

    def open(self) -> None:
        """Finds what an earlier process left."""
        found = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") and entry.name.endswith(_SUFFIX):
                    self._remove(entry.name)  # was not finished when its writer ended
                elif (waiting := _waiting(entry)) is not None:
                    found.append(waiting)
        for waiting in sorted(found):
            self._of_its_sort(waiting.lasting).append(waiting)
            self._bytes += waiting.size
            self._number = waiting.number
        self._make_room(0, lasting=True)

    def put(self, signal: Signal, batch: str, body: bytes, kinds: Mapping[str, int], *, lasting: bool) -> bool:
        """Keeps a request; False where the disk does not take it, and then nothing has changed but that older ones may have gone."""
        data = json.dumps(kinds).encode() + b"\n" + gzip.compress(body, 1, mtime=0)
        waiting = Waiting(self._number + 1, self._clock().timestamp(), signal, batch, _blocks(len(data)), lasting)
        if waiting.size > self._limit or not self._make_room(waiting.size, lasting=lasting):
            self._dropped.update(kinds)
            return True
        try:
            self._write(waiting.name, data, sync=lasting)
        except OSError as e:
            self._complain(e.strerror or str(e))
            self._remove(f".{waiting.name}")
            return False
        self._complained = False
        self._number += 1
        self._of_its_sort(lasting).append(waiting)
        self._bytes += waiting.size
        return True

    def oldest(self) -> Kept | None:
        """What has waited longest; None where nothing waits. What is too old or damaged is dropped on the way."""
        self._make_room(0, lasting=True)
        while (waiting := self._oldest()) is not None:
            try:
                return _read(waiting, self._folder)
            except FileNotFoundError:
                self._forget(waiting)  # somebody else sent or removed it
            except (OSError, ValueError, EOFError, zlib.error):
                self._dropped[DAMAGED] += 1
                self._forget(waiting)
        return None

    def forget(self, kept: Kept) -> None:
        """Nothing more is to become of it: it is the oldest."""
        if self._oldest() == kept.waiting:
            self._forget(kept.waiting)

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._lasting)

    @property
    def size(self) -> int:
        """Bytes that it takes on the disk."""
        return self._bytes

    @property
    def age(self) -> float | None:
        """For how many seconds the oldest has been waiting; None where nothing waits."""
        with suppress(IndexError):  # the sender's thread took the last one meanwhile
            oldest = self._oldest()
            return None if oldest is None else max(0.0, self._clock().timestamp() - oldest.at)
        return None

    @property
    def dropped(self) -> Mapping[str, int]:
        """Parts that were dropped since the start, by kind."""
        return dict(self._dropped)

    def _of_its_sort(self, lasting: bool) -> deque[Waiting]:
        return self._lasting if lasting else self._ordinary

    def _oldest(self) -> Waiting | None:
        return min((files[0] for files in (self._ordinary, self._lasting) if files), default=None)

    def _make_room(self, size: int, *, lasting: bool) -> bool:
        """For a file of `size` bytes; False where only such that outlast it would make place."""
        too_old = self._clock().timestamp() - self._max_age
        for files in (self._ordinary, self._lasting):
            while files and files[0].at < too_old:
                self._drop(files[0])
        while self._bytes + size > self._limit or len(self) >= MOST:
            if not self._ordinary and not (lasting and self._lasting):
                return False
            self._drop((self._ordinary or self._lasting)[0])
        return True

    def _drop(self, waiting: Waiting) -> None:
        try:
            self._dropped.update(_kinds(self._folder / waiting.name))
        except (OSError, ValueError):
            self._dropped[DAMAGED] += 1
        self._forget(waiting)

    def _forget(self, waiting: Waiting) -> None:
        """It is the oldest of its sort."""
        self._of_its_sort(waiting.lasting).popleft()
        self._bytes -= waiting.size
        self._remove(waiting.name)

    def _write(self, name: str, data: bytes, *, sync: bool) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        room = os.statvfs(self._folder)
        if room.f_bavail * room.f_frsize < self._spare + len(data):
            raise OSError(f"less than {bound(self._spare)} is free")
        fresh = self._folder / f".{name}"
        with fresh.open("wb") as f:
            f.write(data)
            if sync:
                f.flush()
                os.fsync(f.fileno())
        fresh.replace(self._folder / name)
        if sync:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            (self._folder / name).unlink()

    def _complain(self, why: str) -> None:
        if not self._complained:
            _log.warning("cannot keep telemetry in %s: %s; it waits in memory", self._folder, why)
        self._complained = True


def _waiting(entry: "os.DirEntry[str]") -> Waiting | None:
    """The file of a folder's entry; None where it is none of ours."""
    parts = entry.name.removesuffix(_SUFFIX).split("-")
    if not entry.name.endswith(_SUFFIX) or len(parts) != 4 or parts[2] not in _SORTS:
        return None
    if not all(part.isascii() and part.isdecimal() and len(part) <= 32 for part in parts[:2]):
        return None
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None
    signal, lasting = _SORTS[parts[2]]
    return Waiting(int(parts[0]), float(parts[1]), signal, parts[3], _blocks(size), lasting)


def _read(waiting: Waiting, folder: Path) -> Kept:
    """Raises OSError, and ValueError, EOFError or zlib.error where it is not whole."""
    path = folder / waiting.name
    if path.stat().st_size > _LARGEST:
        raise ValueError("too large")
    head, _, body = path.read_bytes().partition(b"\n")
    unpacking = zlib.decompressobj(31)
    unpacking.decompress(body, _LARGEST)
    if not unpacking.eof:
        raise EOFError("not whole")
    return Kept(waiting, body, dict(_counts(head)))


def _kinds(path: Path) -> Mapping[str, int]:
    with path.open("rb") as f:
        return dict(_counts(f.readline(_BLOCK)))


def _counts(head: bytes) -> Iterator[tuple[str, int]]:
    found = json.loads(head)
    if not isinstance(found, dict):
        raise ValueError("no counts")
    for kind, count in found.items():
        yield str(kind), int(count)


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
