"""What an earlier launcher of a run left on this node when it was killed: ranks that nobody watches, on the devices that we need.

Which launcher is the earlier one is told by a lock, which the kernel takes from a process that is no more.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from exporters.job.procfs import PROC, ZOMBIE, Stat, pids, read_command, read_environ, read_stat
from exporters.job.stop import Turn, stop
from pipeline.clock import monotonic
from pipeline.errors import InputError
from surefoot.hook import layout

_PATIENCE: Final = 5.0  # seconds for a launcher that is just ending
_LOOK: Final = 0.1
_LIMIT: Final = 15.0  # seconds of killing after which a process counts as immortal
_log = structlog.get_logger()


@contextmanager
def only_launcher(folder: Path, run: str, node: str) -> Iterator[bool]:
    """Holds the place of the one launcher of `run` on `node`; gives False where that cannot be made sure of.

    Raises InputError where another one holds it.
    """
    path = folder / f"{run}.{node}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
    except OSError:  # a folder that cannot be written, or a file system without locks
        yield False
        return
    if lock is None:
        raise InputError(
            f"run {run} has a launcher on node {node} already, process {_holder(path)}: end it first, or give this run another --run-id"
        )
    try:
        with suppress(OSError):  # a full disk: whose it is, is not told then
            os.write(lock, str(os.getpid()).encode())
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(lock)


def end_strays(run: str, node: str, rings: Path, turn: Turn, root: str = PROC) -> Sequence[int]:
    """Kills what is left of the run's earlier attempts on this node; gives the pids. For the only launcher, once it was let in."""
    found = strays(run, node, rings, root)
    if not found:
        return []
    _log.warning("processes of an earlier attempt were left here by a launcher that is gone: they are killed", pids=[s.pid for s in found])
    left = stop(lambda: strays(run, node, rings, root), (), grace=0.0, limit=_LIMIT, turn=turn).left
    if left:
        _log.warning("some of them do not die", pids=left)
    return [s.pid for s in found]


def strays(run: str, node: str, rings: Path, root: str = PROC) -> list[Stat]:
    """The processes on this machine that carry an attempt of `run` on `node` in their environment, and that no launcher watches.

    We and our parents are not among them, nor what belongs to another Surefoot on this machine, with a ring folder of its own.
    """
    wanted = {layout.ENV_RUN: run, layout.ENV_NODE: node, layout.ENV_RING_DIR: str(rings)}
    mine = set(_ancestry(os.getpid(), root))
    found: dict[int, Stat] = {}
    for pid in pids(root):
        told = {} if pid in mine else read_environ(pid, (*wanted, layout.ENV_ATTEMPT), root)
        if told.pop(layout.ENV_ATTEMPT, "") and told == wanted and (stat := read_stat(pid, root)) and stat.state not in ZOMBIE:
            found[pid] = stat
    return [stat for stat in found.values() if not _is_launcher(_guardian(stat, found), root)]


def _guardian(stat: Stat, found: Mapping[int, Stat]) -> int:
    """The first process above `stat` that is not one of those found."""
    while stat.ppid in found:
        stat = found[stat.ppid]
    return stat.ppid


def _is_launcher(pid: int, root: str) -> bool:
    words = read_command(pid, root)
    return "run" in words and any(word.rpartition("/")[2] == "surefoot" for word in words)


def _ancestry(pid: int, root: str) -> Iterator[int]:
    while pid > 0:
        yield pid
        stat = read_stat(pid, root)
        pid = stat.ppid if stat else 0


def _locked(path: Path) -> int | None:
    """The file, locked; None where somebody else has held it for too long. Raises OSError where there can be no such file."""
    deadline = monotonic() + _PATIENCE
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(fd, path):
                os.ftruncate(fd, 0)
                return fd
        os.close(fd)
        if monotonic() >= deadline:
            return None
        time.sleep(_LOOK)


def _is_at(fd: int, path: Path) -> bool:
    """Whether the file is still the one of that name: its last holder may have taken it away before it let go."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), path.stat())
    return False


def _holder(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
    return "unknown"
