"""What the kernel saved of a crash, in the platform's memory, for after the boot: the files of /sys/fs/pstore, and those that
systemd-pstore has moved from there, under their names, into folders of its own. Nothing is taken away.

Documentation/ABI/testing/pstore: `dmesg-BACKEND-ID` is the end of the log, in parts where a record of the platform is small. A part
begins with a line as "Panic#1 Part1": why it was saved, the how manieth time since boot, and which part; the first holds the newest
lines. Its time is that of the crash. What the kernel could not unpack (".enc.z") is not read.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final

from exporters.sources.kernel.log import parse_line

MOST_FILES: Final = 512
MOST_BYTES: Final = 1 << 16  # of a file; the platforms' records are smaller
TOGETHER: Final = 60.0  # seconds that the saving of one crash's parts may take
_NAME: Final = re.compile(r"dmesg-.+-\d+")
_HEAD: Final = re.compile(rb"(Panic|Oops)#(\d{1,9}) Part(\d{1,9})\r?")


@dataclass(frozen=True, slots=True)
class Saved:
    """A file by what tells it from another one. `at` is when it was saved, or moved, seconds since 1970; `size` is bytes."""

    name: str
    at: int
    size: int
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What a file holds: `why` is "panic" or "oops", `count` numbers the crashes of one boot, part 1 is the newest; `id` tells it from
    every other part, wherever it lies."""

    file: Saved
    id: str
    why: str
    count: int
    number: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash by the file and id of its first part, with its lines, the oldest first."""

    file: Saved
    id: str
    why: str
    lines: tuple[str, ...]


def files(folder: Path, depth: int = 0) -> list[Saved]:
    """The parts of logs that are there and `depth` folders below. Raises OSError where the folder is not there or may not be read."""
    found: list[Saved] = []
    with os.scandir(folder) as entries:
        for entry in islice(entries, MOST_FILES):
            try:
                if depth and entry.is_dir(follow_symlinks=False):
                    found += files(Path(entry.path), depth - 1)
                elif _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    found.append(Saved(entry.name, int(stat.st_mtime), stat.st_size, str(folder)))
            except OSError:  # systemd-pstore is taking it away
                continue
    return sorted(found, key=lambda one: -one.at)[:MOST_FILES]


def read(file: Saved) -> Part | None:
    """What `file` holds; None where that is no crash (a shutdown is saved, too, where somebody wants it). Raises OSError."""
    with (Path(file.folder) / file.name).open("rb") as opened:
        return part(file, opened.read(MOST_BYTES))


def part(file: Saved, raw: bytes) -> Part | None:
    """The same of a file's bytes. Pure."""
    first, _, rest = raw.partition(b"\n")
    head = _HEAD.fullmatch(first)
    if head is None:
        return None
    lines = tuple(_line(line, number) for number, line in enumerate(rest.split(b"\n")) if line.strip())
    id_ = blake2b(file.name.encode(errors="replace") + b"\x1f" + raw, digest_size=16).hexdigest()
    return Part(file, id_, head[1].decode().lower(), int(head[2]), int(head[3]), lines)


def crashes(parts: Iterable[Part]) -> list[Crash]:
    """The crashes whose first part is there; without it nothing tells what happened, or the files are just being taken away. Pure."""
    known = list({one.id: one for one in parts}.values())  # one that is just being moved may be there twice
    found: list[Crash] = []
    for newest in sorted((one for one in known if one.number == 1), key=lambda one: (one.file.at, one.count, one.file.name)):
        own = [one for one in known if _older(one, newest)]
        ordered = [*sorted(own, key=lambda one: -one.number), newest]
        found.append(Crash(newest.file, newest.id, newest.why, tuple(line for one in ordered for line in one.lines)))
    return found


def _older(one: Part, newest: Part) -> bool:
    same = (one.why, one.count) == (newest.why, newest.count) and one.number > 1
    return same and abs(one.file.at - newest.file.at) <= TOGETHER


def _line(line: bytes, number: int) -> str:
    record = parse_line(line, number)
    return record.text if record else line.decode("utf-8", "replace")
