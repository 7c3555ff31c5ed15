"""Requests that wait on disk while ingest is away: bounded in bytes, files and age, given back in the order in which they came.

A file is one OTLP request under its batch id, so that it is stored once however often it is sent. It is written beside its place and
renamed into it: what is there survives the end of the process, whatever ends it. Requests with what cannot be measured again (events,
transitions) are also synced to disk, file and folder, before they count as kept; the others survive a kill, not a loss of power. What
a loss of power has left half-written is told by gzip's checksum, dropped and counted.
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

MOST: Final = 20_000  # files
SPARE: Final = 256 << 20  # bytes that others keep on the file system: waiting telemetry is not what fills it
DAMAGED: Final = "damaged"  # the kind under which a file is counted that cannot be read
_LARGEST: Final = 16 << 20  # bytes of a request, not compressed
_BLOCK: Final = 4096  # what a file system gives out
_SUFFIX: Final = ".otlp.gz"
_SIGNALS: Final = {"l": Signal.LOGS, "m": Signal.METRICS}
_LETTERS: Final = {signal: letter for letter, signal in _SIGNALS.items()}
_log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """A file: its place in the order, when it was written (seconds since 1970), and the bytes that it takes."""

    number: int
    at: float
    signal: Signal
    batch: str
    size: int

    @property
    def name(self) -> str:
        """Of the file."""
        return f"{self.number:016d}-{self.at:.0f}-{_LETTERS[self.signal]}-{self.batch}{_SUFFIX}"


class Kept(NamedTuple):
    """A request as it is to be sent: `body` is gzip; `kinds` counts its parts."""

    waiting: Waiting
    body: bytes
    kinds: Mapping[str, int]


class DiskBuffer:
    """At most `limit` bytes in `folder`, none older than `max_age` seconds; the oldest goes first, and is counted.

    For one thread, but for `size`, `age` and `dropped`. `spare` bytes stay free on the file system. No method raises for what the
    disk does.
    """

    def __init__(self, folder: Path, limit: int, max_age: float, *, spare: int = SPARE, clock: Clock = utcnow) -> None:
        self._folder, self._limit, self._max_age, self._spare = folder, limit, max_age, spare
        self._clock = clock
        self._files: deque[Waiting] = deque()
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
        self._files.extend(sorted(found))
        self._bytes = sum(waiting.size for waiting in self._files)
        self._number = self._files[-1].number if self._files else 0
        self._make_room(0)

    def put(self, signal: Signal, batch: str, body: bytes, kinds: Mapping[str, int], *, lasting: bool) -> bool:
        """Keeps a request; False where the disk does not take it, and then nothing has changed but that older ones may have gone."""
        data = json.dumps(kinds).encode() + b"\n" + gzip.compress(body, 1, mtime=0)
        waiting = Waiting(self._number + 1, self._clock().timestamp(), signal, batch, _blocks(len(data)))
        if waiting.size > self._limit:
            self._dropped.update(kinds)
            return True
        self._make_room(waiting.size)
        try:
            self._write(waiting.name, data, sync=lasting)
        except OSError as e:
            self._complain(e.strerror or str(e))
            self._remove(f".{waiting.name}")
            return False
        self._complained = False
        self._number += 1
        self._files.append(waiting)
        self._bytes += waiting.size
        return True

    def oldest(self) -> Kept | None:
        """What has waited longest; None where nothing waits. What is too old or damaged is dropped on the way."""
        self._make_room(0)
        while self._files:
            try:
                return _read(self._files[0], self._folder)
            except FileNotFoundError:
                self._forget_oldest()  # somebody else sent or removed it
            except (OSError, ValueError, EOFError, zlib.error):
                self._dropped[DAMAGED] += 1
                self._forget_oldest()
        return None

    def forget(self, kept: Kept) -> None:
        """Nothing more is to become of it: it is the oldest."""
        if self._files and self._files[0] == kept.waiting:
            self._forget_oldest()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def size(self) -> int:
        """Bytes that it takes on the disk."""
        return self._bytes

    @property
    def age(self) -> float | None:
        """For how many seconds the oldest has been waiting; None where nothing waits."""
        with suppress(IndexError):
            return max(0.0, self._clock().timestamp() - self._files[0].at)
        return None

    @property
    def dropped(self) -> Mapping[str, int]:
        """Parts that were dropped since the start, by kind."""
        return dict(self._dropped)

    def _make_room(self, size: int) -> None:
        oldest = self._clock().timestamp() - self._max_age
        while self._files and (self._bytes + size > self._limit or len(self._files) >= MOST or self._files[0].at < oldest):
            try:
                self._dropped.update(_kinds(self._folder / self._files[0].name))
            except (OSError, ValueError):
                self._dropped[DAMAGED] += 1
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        waiting = self._files.popleft()
        self._bytes -= waiting.size
        self._remove(waiting.name)

    def _write(self, name: str, data: bytes, *, sync: bool) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        room = os.statvfs(self._folder)
        if room.f_bavail * room.f_frsize < self._spare + len(data):
            raise OSError(f"fewer than {self._spare >> 20} MiB are free")
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
    if not entry.name.endswith(_SUFFIX) or len(parts) != 4 or parts[2] not in _SIGNALS:
        return None
    if not all(part.isascii() and part.isdecimal() and len(part) <= 32 for part in parts[:2]):
        return None
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None
    return Waiting(int(parts[0]), float(parts[1]), _SIGNALS[parts[2]], parts[3], _blocks(size))


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
