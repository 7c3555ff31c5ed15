"""The writer of one rank's ring file: created whole before it is mapped, then written without a system call.

Errors are the caller's: `create` raises OSError or ValueError, the writers raise what `struct` and `memoryview`
raise at values that do not fit. `StepMonitor` catches them all.
"""

import mmap
import os
import stat
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from surefoot.hook.layout import (
    CAPACITY,
    CHECKPOINT_RECORD,
    CLOSED_OFFSET,
    CRC,
    CRC_OFFSET,
    HEADER,
    HEADER_SIZE,
    KIND_CHECKPOINT,
    KIND_PHASE,
    KIND_STEP,
    LIVE,
    LIVE_OFFSET,
    MAGIC,
    PHASE_RECORD,
    PHASES,
    RING_SUFFIX,
    SLOT_SIZE,
    VERSION,
    WRITTEN_OFFSET,
)

SIZE: Final = HEADER_SIZE + CAPACITY * SLOT_SIZE

# A step's slot in two parts, because many steps have no phases: layout.STEP is what they make together.
_HEAD: Final = Struct("<QIIQQQdddQQ")
_PHASES: Final = Struct(f"<{len(PHASES)}Q")
_PHASES_AT: Final = _HEAD.size
_PHASES_END: Final = _PHASES_AT + _PHASES.size

_WRITTEN: Final = WRITTEN_OFFSET // 8
_CLOSED: Final = CLOSED_OFFSET // 8
_pack_head = _HEAD.pack_into
_pack_phases = _PHASES.pack_into
_crc32 = zlib.crc32
_PATH_ROOM: Final = 192
_NO_PHASES: Final = bytes(_PHASES.size)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes a ring. `created` is ns since 1970."""

    run: str
    attempt: str
    node: str
    rank: int
    local_rank: int
    world_size: int
    created: int

    def header(self) -> bytes:
        """The ring's header. Raises ValueError where a name does not fit or would leave the ring's folder."""
        names = [text.encode() for text in (self.run, self.attempt, self.node)]
        if any(len(name) > room for name, room in zip(names, (64, 96, 64), strict=True)):
            raise ValueError("a run's, attempt's or node's name is longer than its field")
        if not self.attempt or self.attempt.startswith(".") or "/" in self.attempt or "\0" in self.attempt:
            raise ValueError(f"attempt {self.attempt!r} cannot be a file's name")
        numbers = (VERSION, HEADER_SIZE, SLOT_SIZE, CAPACITY, os.getpid(), self.rank, self.local_rank, self.world_size)
        return HEADER.pack(MAGIC, *numbers, self.created, *names)


class RingWriter:
    """Writes records and the live state of one rank. Not for several threads at once.

    `words` are the ring's 64-bit words, for the live state's stores. A writer made with no argument
    writes into memory that nobody reads, which is how a monitor without a ring runs the same code.
    """

    def __init__(self, memory: mmap.mmap | None = None) -> None:
        self.mapped = memory is not None
        self._use(memoryview(bytearray(SIZE) if memory is None else memory))

    def _use(self, memory: memoryview) -> None:
        self.words = memory.cast("Q")
        self._live = memory[LIVE_OFFSET : LIVE_OFFSET + LIVE.size + CRC.size]
        self._slots = [_slot(memory[at : at + SLOT_SIZE]) for at in range(HEADER_SIZE, SIZE, SLOT_SIZE)]
        self._leaves_traces = False  # a record of before has bytes where a step without phases has none
        self._written = 0
        self._collectives = 0

    @classmethod
    def create(cls, folder: Path, identity: Identity) -> "RingWriter":
        """A writer into a new file `<attempt>.<rank>.ring` in `folder`, which is made where it is missing.

        The ring of a dead process of the same attempt and rank is replaced. Raises OSError (no space,
        no permission, a living process has that ring) or ValueError (names).
        """
        header = identity.header()
        name = f"{identity.attempt}.{identity.rank}{RING_SUFFIX}"
        _make_folder(folder)
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return cls(_map(at, name, header))
        finally:
            os.close(at)

    def forget(self) -> None:
        """From now on write into memory that nobody reads; the file stays as it is."""
        self.mapped = False
        self._use(memoryview(bytearray(SIZE)))

    def close(self, at: int) -> None:
        """Say that the monitor ended in good order, at `at` (ns since 1970)."""
        self.words[_CLOSED] = at

    def step(
        self,
        step: int,
        started: int,
        ended: int,
        phases: Sequence[int] | None,
        flags: int,
        loss: float,
        grad_norm: float,
        flops: float,
        tokens: int,
        samples: int,
    ) -> None:
        """Record a step: times in ns since 1970, ns by phase (None: it had none), the figures that `flags` says."""
        sequence = self._written
        slot, body, checksum = self._slots[sequence % CAPACITY]
        self._written = after = sequence + 1
        _pack_head(slot, 0, after, KIND_STEP, flags, step, started, ended, loss, grad_norm, flops, tokens, samples)
        if phases is not None:
            _pack_phases(slot, _PHASES_AT, *phases)
            self._leaves_traces = True
        elif self._leaves_traces:
            slot[_PHASES_AT:_PHASES_END] = _NO_PHASES
        checksum[0] = _crc32(body)
        self.words[_WRITTEN] = after

    def phase(self, phase: int, after: int, started: int, ended: int) -> None:
        """Record a phase outside any step; `after` is the last step + 1, 0 for none; times in ns since 1970."""
        self._put(PHASE_RECORD.pack(self._written + 1, KIND_PHASE, phase, after, started, ended))

    def checkpoint(self, step: int, at: int, size: int, path: str) -> None:
        """Record that the checkpoint of `step` in `path`, `size` bytes, was completed at `at` (ns since 1970)."""
        cut = path.encode("utf-8", "surrogateescape")[:_PATH_ROOM]
        self._put(CHECKPOINT_RECORD.pack(self._written + 1, KIND_CHECKPOINT, 0, step, at, size, cut))

    def _put(self, body: bytes) -> None:
        body = body.ljust(CRC_OFFSET, b"\0")
        self._slots[self._written % CAPACITY][0][:] = body + CRC.pack(_crc32(body))
        self._leaves_traces = True
        self._written = self.words[_WRITTEN] = self._written + 1

    def collective(self, step: int, completed: int, since: int, phase: int, name: bytes) -> None:
        """Name the collective that begins at `since`, which is also the phase word's time."""
        self._collectives += 1
        body = LIVE.pack(self._collectives, step, completed, since, phase, name)
        self._live[:] = body + CRC.pack(_crc32(body))


def _slot(memory: memoryview) -> tuple[memoryview, memoryview, memoryview]:
    """A slot, its body, and its checksum as one number."""
    return memory, memory[:CRC_OFFSET], memory[CRC_OFFSET:].cast("I")


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)  # other users' trainings write here too; mkdir's mode is cut by the umask


def _map(folder: int, name: str, header: bytes) -> mmap.mmap:
    """A new file `name` in the open `folder`, with all its blocks, mapped. Leaves no file behind on failure."""
    file = _create(folder, name)
    try:
        os.posix_fallocate(file, 0, SIZE)  # a mapping over a full tmpfs would be a SIGBUS
        os.pwrite(file, header, 0)
        memory = mmap.mmap(file, SIZE)
    except (OSError, ValueError):
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(file)
    return memory


def _create(folder: int, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, 0o644, dir_fd=folder)  # 0o644: the agent may run as another user
    except FileExistsError:
        if not _left_behind(folder, name):
            raise
        os.unlink(name, dir_fd=folder)
        return os.open(name, flags, 0o644, dir_fd=folder)


def _left_behind(folder: int, name: str) -> bool:
    """Is `name` a ring of ours whose process is gone?"""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = os.fstat(file)
        head = os.pread(file, HEADER.size, 0)
    finally:
        os.close(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return False
    if len(head) < HEADER.size or not head.startswith(MAGIC):
        return False
    return not _alive(HEADER.unpack(head)[5])


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
