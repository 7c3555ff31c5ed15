"""What /proc says of a process. Sources: proc_pid_stat(5), proc_pid_environ(5). Times are clock ticks since boot."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PROC: Final = "/proc"
ZOMBIE: Final = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class Stat:
    """A process at one moment; (pid, start) names it for ever, since a pid is used again."""

    pid: int
    state: str  # R, S, D, T, Z …
    ppid: int
    start: int
    wait_status: int  # as waitpid gives it; means something only while the process is a zombie

    @property
    def key(self) -> tuple[int, int]:
        """What tells this process from a later one with its pid."""
        return self.pid, self.start


def parse_stat(text: bytes) -> Stat:
    """The fields of a stat line. Raises ValueError for anything else (a name may hold blanks and brackets)."""
    head, closing, tail = text.rpartition(b") ")
    fields = tail.split()
    if not closing or len(fields) < 50:
        raise ValueError(f"not a stat line: {text[:80]!r}")
    return Stat(int(head.split(b" ", 1)[0]), fields[0].decode(), int(fields[1]), int(fields[19]), int(fields[49]))


def read_stat(pid: int, root: str = PROC) -> Stat | None:
    """The stat of `pid`; None where there is no such process (any more)."""
    text = _read(f"{root}/{pid}/stat")
    return parse_stat(text) if text else None


def pids(root: str = PROC) -> list[int]:
    """Every process id there is now."""
    return [int(name) for name in os.listdir(root) if name.isdecimal()]


def read_environ(pid: int, names: Iterable[str], root: str = PROC) -> dict[str, str]:
    """Of the environment that `pid` was started with, those variables of `names` that it has; empty where it may not be read."""
    wanted = {name.encode() for name in names}
    pairs = (entry.partition(b"=") for entry in _read(f"{root}/{pid}/environ").split(b"\0"))
    return {name.decode(): value.decode("utf-8", "replace") for name, _, value in pairs if name in wanted}


def read_command(pid: int, root: str = PROC) -> list[str]:
    """The command line of `pid`; empty where it is gone or a zombie."""
    return [word.decode("utf-8", "replace") for word in _read(f"{root}/{pid}/cmdline").split(b"\0") if word]


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # gone, or not ours to read: both are ordinary
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)
