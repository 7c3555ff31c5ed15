"""A memory control group for a drill's training, of version 1 or 2. Linux; for root."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.job.procfs import read_stat
from exporters.sources import cgroups

_PROC, _ROOT = Path("/proc"), Path("/sys/fs/cgroup")
_PREFIX: Final = "surefoot-drill-"
_NAME: Final = re.compile(rf"{_PREFIX}(\d+)\.(\d+)")
_LIMITS: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}
_NO_LIMIT: Final = {1: "-1", 2: "max"}
_NO_SWAP: Final = {1: ("memory.swappiness", "0"), 2: ("memory.swap.max", "0")}
_END_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A control group of ours."""

    folder: Path
    version: int

    @property
    def procs(self) -> Path:
        """The file that takes in a process whose id is written to it."""
        return self.folder / "cgroup.procs"

    @property
    def used(self) -> int:
        """Bytes charged to it."""
        return self._look().used or 0

    @property
    def kills(self) -> int:
        """How many of its processes the kernel has killed for want of memory."""
        return self._look().oom_kills or 0

    def limit(self, most: int | None) -> None:
        """It may use `most` bytes; None: as many as there are. Raises OSError."""
        (self.folder / _LIMITS[self.version]).write_text(_NO_LIMIT[self.version] if most is None else str(most))

    def _look(self) -> cgroups.GroupMemory:
        return cgroups.memory(cgroups.Group("", self.folder, self.version)) or cgroups.GroupMemory(None, None, None)


def at(folder: Path) -> MemoryGroup:
    """The group at `folder`."""
    return MemoryGroup(folder, 1 if (folder / _LIMITS[1]).exists() else 2)


@contextmanager
def group() -> Iterator[MemoryGroup]:
    """A group below our own or, where that cannot have any, above it; who is left in it at the end is killed. Raises OSError."""
    made = _make()
    try:
        yield made
    finally:
        _remove(made.folder, _END_SECONDS)


def _make() -> MemoryGroup:
    mine = cgroups.group_of(_PROC, _ROOT, os.getpid())
    if mine is None:
        raise OSError(0, "there is no control group with the memory controller")
    here, failed = mine.folder, OSError(0, "no control group may be made")
    while (here / "cgroup.procs").exists():
        try:
            return _make_in(here, mine.version)
        except OSError as e:
            failed, here = e, here.parent
    raise failed


def _make_in(parent: Path, version: int) -> MemoryGroup:
    """Raises OSError where none can be made there, or one without the memory controller."""
    _clean(parent)
    stat = read_stat(os.getpid())
    made = MemoryGroup(parent / f"{_PREFIX}{os.getpid()}.{stat.start if stat else 0}", version)
    made.folder.mkdir()
    if not (made.folder / _LIMITS[version]).exists():  # version 2 hands the controller down only where it was told to
        made.folder.rmdir()
        raise OSError(0, "the memory controller is not handed down")
    name, value = _NO_SWAP[version]
    with suppress(OSError):  # a kernel without swap accounting has no such file
        (made.folder / name).write_text(value)
    return made


def _clean(parent: Path) -> None:
    """Take away the groups of drills that were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        named = _NAME.fullmatch(path.name)
        stat = read_stat(int(named[1])) if named else None
        if named and (stat is None or stat.start != int(named[2])):
            with suppress(OSError):
                path.rmdir()


def _remove(folder: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while folder.is_dir():
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
