"""What the Lustre client says about its file systems (llite) and the servers' targets (osc, mdc), in base units.

Its parameters are spread over /proc/fs/lustre, /sys/fs/lustre and /sys/kernel/debug/lustre, differently from version to version:
each is looked for in all of them.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exporters.sources.attributes import text, whole

_WELL: Final = frozenset({"FULL", "IDLE"})  # IDLE: nothing was asked of it lately, and it let the connection go on purpose
_UNITS: Final = {"usec": 1e-6, "usecs": 1e-6, "msec": 1e-3, "sec": 1.0}
_SAMPLES: Final = re.compile(r"^(\w+) +(\d+) samples \[(\w+)\](?: (\d+) (\d+) (\d+))?", re.M)
_FIELD: Final = re.compile(r"^ *(state|inflight|timeouts|avg_waittime|connection_attempts): *(\S+)(?: (\w+))?", re.M)
_NAME: Final = re.compile(r"(?P<target>.+-(?:OST|MDT)[0-9a-f]{4})-(?P<kind>osc|mdc)-.+")
_KEPT: Final = 1 << 63


@dataclass(slots=True)
class FileSystem:
    """A mounted file system of that name; where it is mounted twice, both together. Bytes, and calls by name."""

    name: str
    read: int | None = None
    written: int | None = None
    calls: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A server's target, as this client sees it: `kind` osc holds data, mdc names. `wait` is how long a request waited, on average."""

    name: str
    kind: str
    state: str
    connected: bool | None
    in_flight: int | None
    timeouts: int | None
    wait: float | None
    connects: int | None
    size: int | None
    free: int | None


def file_systems(proc: Path, sys: Path) -> list[FileSystem]:
    """The file systems that are mounted, by name."""
    found: dict[str, FileSystem] = {}
    for name, places in sorted(_folders(proc, sys, "llite").items()):
        stats = next((said for place in places if (said := text(place / "stats")) is not None), None)
        if stats is not None:
            _add(found.setdefault(name.rpartition("-")[0] or name, FileSystem(name.rpartition("-")[0] or name)), stats)
    return list(found.values())


def _add(total: FileSystem, stats: str) -> None:
    """ "read_bytes 10 samples [bytes] 4096 1048576 5242880": count, unit, least, most, sum."""
    for name, count, unit, _, _, summed in _SAMPLES.findall(stats):
        if (number := _kept(count)) is not None:
            total.calls[name] = total.calls.get(name, 0) + number
        if unit == "bytes" and (size := _kept(summed)) is not None:
            if name == "read_bytes":
                total.read = (total.read or 0) + size
            elif name == "write_bytes":
                total.written = (total.written or 0) + size


def targets(proc: Path, sys: Path) -> Iterator[Target]:
    """The targets that this client has, once each, in order."""
    seen: set[str] = set()
    for kind in ("mdc", "osc"):
        for name, places in sorted(_folders(proc, sys, kind).items()):
            match = _NAME.fullmatch(name)
            if match and match["kind"] == kind and match["target"] not in seen:
                seen.add(match["target"])
                yield _target(match["target"], kind, places)


def _target(name: str, kind: str, places: list[Path]) -> Target:
    said = {key: (value, unit) for key, value, unit in _FIELD.findall(_first(places, "import") or "")}
    state = said.get("state", ("", ""))[0]
    wait, unit = said.get("avg_waittime", ("", ""))
    seconds = _kept(wait)
    size, free = (_kept(_first(places, file)) for file in ("kbytestotal", "kbytesavail"))
    return Target(
        name,
        kind,
        state,
        state in _WELL if state else None,
        _kept(said.get("inflight", ("", ""))[0]),
        _kept(said.get("timeouts", ("", ""))[0]),
        seconds * _UNITS[unit] if seconds is not None and unit in _UNITS else None,
        _kept(said.get("connection_attempts", ("", ""))[0]),
        size * 1024 if size is not None else None,
        free * 1024 if free is not None else None,
    )


def _folders(proc: Path, sys: Path, kind: str) -> dict[str, list[Path]]:
    """The folders of each device of `kind`, by its name."""
    found: dict[str, list[Path]] = {}
    for root in (f"{sys}/fs/lustre", f"{sys}/kernel/debug/lustre", f"{proc}/fs/lustre"):
        if not os.path.isdir(root):  # nearly everywhere
            continue
        try:
            names = [path for path in Path(root, kind).iterdir() if path.is_dir()]
        except OSError:
            continue
        for path in names:
            found.setdefault(path.name, []).append(path)
    return found


def _first(places: list[Path], file: str) -> str | None:
    return next((said for place in places if (said := text(place / file)) is not None), None)


def _kept(word: str | None) -> int | None:
    value = whole(word)
    return value if value is not None and value < _KEPT else None
