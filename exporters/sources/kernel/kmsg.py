"""The kernel's log from /dev/kmsg, or from a file that somebody saved. Reads never wait."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.sources.kernel.log import KernelRecord, parse, parse_line

MOST: Final = 5_000  # records a call: what a flood may cost; what is overwritten meanwhile is counted
_MOST_SKIPPED: Final = 1_000_000
_RECORD: Final = 16 << 10  # bytes: more than the largest record
_FILE: Final = 8 << 20  # bytes of a saved file a call


@dataclass(frozen=True, slots=True)
class Read:
    """What one call gave. `lost` were overwritten before they were read; `malformed` were no records; `all`: nothing more is there now."""

    records: tuple[KernelRecord, ...]
    lost: int = 0
    malformed: int = 0
    all: bool = True


def live(path: Path) -> bool:
    """Whether `path` is the kernel's own log, no saved one, and may be read by us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return stat.S_ISCHR(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


class Kmsg:
    """The log at `path`. `after` is the sequence number of the last record that was read; given as None: only what comes from now on.

    A saved file is read from its beginning, whatever `after` says. Raises OSError where it cannot be opened.
    """

    cursor: Final = "kernel.sequence"

    def __init__(self, path: Path, after: int | None, read: Callable[[int, int], bytes] = os.read) -> None:
        self._read = read
        self.source = str(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(self._fd).st_mode
            if not stat.S_ISCHR(mode) and not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "is neither the kernel's log nor a file", str(path))
            self.saved = stat.S_ISREG(mode)
            self.after = -1 if after is None else after
            if after is None and not self.saved:
                self._skip()
        except OSError:
            self.close()
            raise
        self._rest = b""
        self._number = 0

    def _skip(self) -> None:
        """Reads over all that is there, so that the number of the newest record is known."""
        for _ in range(_MOST_SKIPPED):
            try:
                record = parse(self._read(self._fd, _RECORD))
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue
            self.after = record.sequence if record else self.after

    def close(self) -> None:
        """Gives the file back."""
        os.close(self._fd)

    def read(self) -> Read:
        """What has been logged since the last call, at most MOST records. Raises OSError where the log cannot be read any more."""
        return self._from_file() if self.saved else self._from_device()

    def _from_device(self) -> Read:
        records: list[KernelRecord] = []
        lost = malformed = 0
        for _ in range(MOST):
            try:
                raw = self._read(self._fd, _RECORD)
            except BlockingIOError:
                return Read(tuple(records), lost, malformed)
            except BrokenPipeError:  # overwritten; the next read gives the oldest that is left
                continue
            if not raw:  # no device ends; a pipe that stands for one does
                return Read(tuple(records), lost, malformed)
            record = parse(raw)
            if record is None:
                malformed += 1
            elif record.sequence > self.after:
                lost += record.sequence - self.after - 1
                self.after = record.sequence
                records.append(record)
        return Read(tuple(records), lost, malformed, all=False)

    def _from_file(self) -> Read:
        raw = self._read(self._fd, _FILE)
        *lines, self._rest = (self._rest + raw).split(b"\n")
        if len(raw) < _FILE or len(self._rest) > _RECORD:  # what was saved without a last newline
            lines.append(self._rest)
            self._rest = b""
        records: list[KernelRecord] = []
        malformed = 0
        for line in _with_fields(lines):
            self._number += 1
            if record := parse_line(line[:_RECORD], self._number):
                records.append(record)
            else:
                malformed += 1
        return Read(tuple(records), 0, malformed, all=len(raw) < _FILE)


def _with_fields(lines: list[bytes]) -> Iterator[bytes]:
    """The lines that are not empty, each with the ` KEY=value` lines after it."""
    whole = b""
    for line in lines:
        if whole and line.startswith(b" ") and b"=" in line and len(whole) < _RECORD:
            whole += b"\n" + line
        else:
            if whole:
                yield whole
            whole = line
    if whole:
        yield whole
