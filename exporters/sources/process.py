"""What /proc/PID says about one process."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GONE: Final = "X"  # the state letter that stands for a process which is no more
MOST_ANCESTORS: Final = 16
_FIRST_PIDS: Final = "pid:[4026531836]"  # include/linux/proc_ns.h: PROC_PID_INIT_INO, 0xEFFFFFFC, the name space that a machine begins with


@dataclass(frozen=True, slots=True)
class Process:
    """`state` is the kernel's letter (R S D Z T t I X); `cpu_seconds` user and system time;
    `started` ticks since boot, which tells apart two processes that had one pid."""

    state: str
    cpu_seconds: float
    started: int


def read(proc: Path, pid: int, ticks: float) -> Process | None:
    """The process `pid`, None where there is none. `ticks` a second is the kernel's USER_HZ.

    Raises OSError where it cannot be said: that is not an end.
    """
    try:
        text = (proc / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse(text, ticks)


def parse(stat: bytes, ticks: float) -> Process | None:
    """The contents of /proc/PID/stat. The second field is the program's name in parentheses and may hold
    anything, so fields are counted from the last closing one. None where it is malformed."""
    fields = stat.rpartition(b")")[2].split()
    try:
        return Process(fields[0].decode("ascii"), (int(fields[11]) + int(fields[12])) / ticks, int(fields[19]))
    except (IndexError, ValueError):
        return None


def owners(proc: Path, pid: int) -> frozenset[int]:
    """The user ids that `pid` runs under (real, effective, saved, file system); empty where there is no such process."""
    try:
        status = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    found = re.search(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$", status, re.M)
    return frozenset(map(int, found.groups())) if found else frozenset()


def lineage(proc: Path, pid: int) -> list[int]:
    """The process that the thread or process `pid` belongs to, its parent, and so on; empty where there is no such process."""
    found: list[int] = []
    while pid > 0 and len(found) < MOST_ANCESTORS:
        try:
            status = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        told = dict(re.findall(r"^(Tgid|PPid):\s+(\d+)$", status, re.M))
        if "Tgid" not in told or int(told["Tgid"]) in found:
            break
        found.append(int(told["Tgid"]))
        pid = int(told.get("PPid", "0"))
    return found


def pids_are_the_kernels(proc: Path) -> bool:
    """Whether we count processes as the kernel's log does: by the machine's own ids, not a container's. False where that cannot be told."""
    try:
        return os.readlink(proc / "self/ns/pid") == _FIRST_PIDS
    except OSError:
        return False
