"""What /proc says about the machine, in base units. Knows files and units, no metric names.

Each value stands alone: what is absent, malformed or beyond belief is None, and hurts no other value.
`proc` is the root, /proc on a live machine.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from exporters.sources.attributes import contents

AHEAD: Final = 60.0  # seconds by which a boot may seem to lie ahead while the clock is being set
SECTOR: Final = 512  # bytes; the unit of /proc/diskstats whatever the disk's own sector
_OF_A_DISK: Final = itemgetter(2, 3, 5, 6, 7, 9, 10, 11, 12)  # what Disks has of the fourteen words that every kernel writes to a line
_LONGEST: Final = 4300  # digits of a number that Python reads
_WRAPPED: Final = 1 << 63  # a negative number printed as unsigned: kernels do that to waiting times


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time since boot, all CPUs together (seconds), CPUs online and the time of boot (seconds since 1970)."""

    busy: float | None
    iowait: float | None
    online: int | None
    boot: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes."""

    total: int | None
    available: int | None


@dataclass(frozen=True, slots=True)
class Pressure:
    """Seconds, since boot, in which some or all tasks waited."""

    some: float | None
    full: float | None


class Disks(NamedTuple):
    """Block devices and partitions, by column: counts, bytes and seconds since each appeared."""

    names: Sequence[str] = ()
    reads: Sequence[int | None] = ()
    read_bytes: Sequence[int | None] = ()
    read_seconds: Sequence[float | None] = ()
    writes: Sequence[int | None] = ()
    written_bytes: Sequence[int | None] = ()
    write_seconds: Sequence[float | None] = ()
    in_flight: Sequence[int | None] = ()
    io_seconds: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. `device` is the kernel's major:minor, the same for all mounts of one superblock."""

    mount_point: str
    source: str
    type: str
    device: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class NfsServer:
    """Bytes that this machine's NFS server read and wrote; the kernel counts them in 32 bits, and begins at 0 again."""

    read: int | None
    written: int | None


def load1(proc: Path) -> float | None:
    """The run queue's length, averaged over one minute."""
    words = _text(f"{proc}/loadavg").split()
    return _float(words[0]) if words else None


def cpu(proc: Path, ticks: float) -> Cpu:
    """CPU times; `ticks` a second is the kernel's USER_HZ (os.sysconf("SC_CLK_TCK"))."""
    online = 0
    busy = iowait = boot = None
    for line in _text(f"{proc}/stat").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "cpu":
            busy, iowait = _cpu_times(words[1:], ticks)
        elif re.fullmatch(r"cpu\d+", words[0]):
            online += 1
        elif words[0] == "btime" and len(words) == 2:
            boot = _float(words[1])
    return Cpu(busy, iowait, online or None, boot)


def passed(boot: float | None, now: float) -> float | None:
    """The time of boot, where it can be one at `now` (both seconds since 1970). The kernel reckons it from the clock that `now` is of."""
    return boot if boot is not None and boot <= now + AHEAD else None


def _cpu_times(words: list[str], ticks: float) -> tuple[float | None, float | None]:
    """user nice system idle iowait irq softirq steal …; guest time is in user already."""
    times = [_int(w) for w in words[:8]]
    if len(times) < 8 or any(t is None for t in times):
        return None, None
    user, nice, system, _, iowait, irq, softirq, steal = (t or 0 for t in times)
    return (user + nice + system + irq + softirq + steal) / ticks, iowait / ticks


def memory(proc: Path) -> Memory:
    """Usable memory, and what could be given out without swapping."""
    found = dict(re.findall(r"^(MemTotal|MemAvailable): +(\d+) kB$", _text(f"{proc}/meminfo"), re.M))
    total, available = (int(found[k]) * 1024 if k in found else None for k in ("MemTotal", "MemAvailable"))
    return Memory(total, available)


def pressure(proc: Path, resource: str) -> Pressure:
    """Stall times of `resource` (cpu, memory, io); both None where the kernel does not keep them."""
    found = dict(re.findall(r"^(some|full) .*total=(\d+)$", _text(f"{proc}/pressure/{resource}"), re.M))
    some, full = (int(found[k]) / 1e6 if k in found else None for k in ("some", "full"))
    return Pressure(some, full)


def oom_kills(proc: Path) -> int | None:
    """Processes killed for want of memory since boot."""
    found = re.search(r"^oom_kill (\d+)$", _text(f"{proc}/vmstat"), re.M)
    return int(found[1]) if found else None


def nfs_server(proc: Path) -> NfsServer | None:
    """What this machine's NFS server did; None where there is none."""
    found = re.search(r"^io (\d+) (\d+)$", _text(f"{proc}/net/rpc/nfsd"), re.M | re.A)
    return NfsServer(_counter(found[1]), _counter(found[2])) if found else None


def boot_id(proc: Path) -> str:
    """The id of this boot, "" where the kernel does not say."""
    return _text(f"{proc}/sys/kernel/random/boot_id").strip()


def disks(proc: Path) -> Disks:
    """Every block device and partition. Raises OSError where there is no diskstats at all."""
    lines = [_OF_A_DISK(words) for words in map(str.split, contents(f"{proc}/diskstats").splitlines()) if len(words) >= 14]
    if not lines:
        return Disks()
    names, *columns = zip(*lines, strict=True)
    reads, read, read_ms, writes, written, write_ms, in_flight, io_ms = map(_counters, columns)
    return Disks(
        names, reads, _times(read, SECTOR), _millis(read_ms), writes, _times(written, SECTOR), _millis(write_ms), in_flight, _millis(io_ms)
    )


def mounts(proc: Path) -> list[Mount]:
    """What is mounted, in the kernel's order; a mount hidden by a later one at the same place is left out.

    A service manager shows its services a tree in which everything is read-only: whether a mount is, is taken from process 1's own
    tree where that has the same mount and may be read. Raises OSError where there is no mountinfo.
    """
    text = contents(f"{proc}/self/mountinfo")
    return list(_mounts_of(text, _text(f"{proc}/1/mountinfo")))


@lru_cache(maxsize=2)
def _mounts_of(text: str, outside: str) -> tuple[Mount, ...]:
    """Kept for as long as the kernel says the same, word for word."""
    here = {mount.mount_point: mount for mount in _parse_mounts(text)}
    there = {(m.mount_point, m.device): m.read_only for m in _parse_mounts(outside)} if outside != text else {}
    return tuple(replace(m, read_only=there.get((m.mount_point, m.device), m.read_only)) for m in here.values())


def _parse_mounts(text: str) -> Iterator[Mount]:
    for line in text.split("\n"):
        mount, _, rest = line.partition(" - ")
        front, back = mount.split(" "), rest.split(" ")
        if len(front) >= 6 and len(back) >= 3:
            options = {*front[5].split(","), *back[2].split(",")}
            yield Mount(unescape(front[4]), unescape(back[1]) or "none", back[0], front[2], "ro" in options)


def unescape(text: str) -> str:
    """Blanks, tabs, newlines and backslashes stand as octal."""
    return re.sub(r"\\(0[0-7]{2}|1[0-7]{2})", lambda m: chr(int(m[1], 8)), text)


def _text(path: str) -> str:
    """The file's text; "" where it is absent or cannot be read."""
    try:
        return contents(path)
    except OSError:
        return ""


def _int(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and len(word) < _LONGEST else None


def _counter(word: str) -> int | None:
    value = _int(word)
    return value if value is not None and value < _WRAPPED else None


def _counters(words: Sequence[str]) -> Sequence[int | None]:
    """Each of them; where all are plain numbers, as they nearly always are, in one go."""
    joined = "".join(words)
    if joined.isdigit() and joined.isascii() and len(joined) < _LONGEST and sum(numbers := [*map(int, words)]) < _WRAPPED:
        return numbers
    return [_counter(word) for word in words]


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _times(values: Sequence[int | None], factor: int) -> list[int | None]:
    return [value and value * factor for value in values]


def _millis(values: Sequence[int | None]) -> list[float | None]:
    return [None if value is None else value / 1000 for value in values]
