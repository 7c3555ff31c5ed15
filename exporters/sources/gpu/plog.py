"""What Ascend's libraries write of errors into their processes' logs (CANN: `debug/plog/plog-PID_TIME.log`).

A line is "[ERROR] HCCL(4711,python3):2026-11-30-12:00:01.070.463 [hccl_socket.cc:100] [4711][Wait]text": the level, the module with process
id and name, the local time with milliseconds and microseconds (in some versions with a blank before the hour), where it stands, and the
text. Lines of other levels are left alone. A file is read on from where it was read last; one that became shorter, anew.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

MOST_FILES: Final = 256  # those written last; a process that writes has its own
MOST_BYTES: Final = 1 << 20  # of a file at once
MAX_LINE: Final = 1 << 16  # a line that is longer is cut
MAX_TEXT: Final = 1000  # characters of a text that are kept
_FILE: Final = re.compile(r"plog-\d{1,10}_\d{1,20}\.log")
_ERROR: Final = re.compile(
    r"\[ERROR\] (?P<module>[A-Z][A-Z0-9_]{0,15})\((?P<pid>\d{1,10}),(?P<process>[^)]{0,64})\):"
    r"(?P<date>\d{4}-\d\d-\d\d)[- ](?P<time>\d\d:\d\d:\d\d)\.(?P<milli>\d{3})(?:\.(?P<micro>\d{3}))? *"
    r"(?:\[(?P<place>[^\]]{0,120})\])?(?P<text>.*)",
    re.DOTALL,
)


class Line(NamedTuple):
    """An error of `module` in a process. `at` is None where the time makes no sense."""

    module: str
    pid: str
    process: str
    at: datetime | None
    place: str
    text: str


def parse(line: str) -> Line | None:
    """The error that a line tells of; None of any other line."""
    found = _ERROR.match(line)
    if found is None:
        return None
    at: datetime | None = None
    with suppress(ValueError, OverflowError, OSError):  # it is local time: this machine's and its containers' alike
        fraction = f"{found['milli']}{found['micro'] or '000'}"
        at = datetime.strptime(f"{found['date']} {found['time']}.{fraction}", "%Y-%m-%d %H:%M:%S.%f").astimezone()
    return Line(found["module"], found["pid"], found["process"], at, found["place"] or "", found["text"].strip()[:MAX_TEXT])


class Plogs:
    """The logs below `root`. `offsets` say how far each was read (bytes); without a file's the whole of it is new, unless `only_new`."""

    def __init__(self, root: Path, offsets: Mapping[str, int], *, only_new: bool) -> None:
        self._folder = root / "debug/plog"
        self._offsets = dict(offsets)
        self._only_new = only_new  # what was there before anybody looked is history
        self._aside: dict[str, int] | None = None  # how far those were read that are not among the newest; None before the first look

    @property
    def offsets(self) -> Mapping[str, int]:
        """How far each file was read."""
        return self._offsets

    @property
    def looked(self) -> bool:
        """Whether anybody has looked: what comes to be there from then on is new."""
        return not self._only_new

    def read(self) -> Iterator[tuple[str, list[Line]]]:
        """The errors written since the last call, by file. Raises OSError where the folder cannot be read."""
        try:
            found, others = self._files()
        except FileNotFoundError:
            self._only_new = False
            raise
        known = {**(self._aside or {}), **self._offsets}
        self._aside = {name: known.get(name, size if self._aside is None else 0) for name, size in others.items()}
        self._offsets = {name: known[name] for name in found if name in known}
        for name, size in found.items():
            if name not in self._offsets:
                self._offsets[name] = size if self._only_new else 0
            if size < self._offsets[name]:
                self._offsets[name] = 0
            with suppress(OSError):  # one that is gone, or not ours to read, costs no other
                if size > self._offsets[name] and (lines := self._more(name)):
                    yield name, lines
        self._only_new = False

    def _files(self) -> tuple[dict[str, int], dict[str, int]]:
        """Sizes by name: of the files that were written last, and of the others."""
        found: list[tuple[float, str, int]] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if _FILE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        stat = entry.stat(follow_symlinks=False)
                        found.append((stat.st_mtime, entry.name, stat.st_size))
        sizes = [(name, size) for _, name, size in sorted(found)]
        return dict(sizes[-MOST_FILES:]), dict(sizes[:-MOST_FILES])

    def _more(self, name: str) -> list[Line]:
        with (self._folder / name).open("rb") as opened:
            opened.seek(self._offsets[name])
            data = opened.read(MOST_BYTES)
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) < MAX_LINE:
            return []  # a line that is still being written
        taken = data[: whole or len(data)]
        self._offsets[name] += len(taken)
        return [line for raw in taken.split(b"\n") if (line := parse(raw[:MAX_LINE].decode("utf-8", "replace")))]
