"""The live cells of an attempt's ranks, read from their ring files once, at a moment of need."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exporters.sources.ring import parse_header
from pipeline.errors import InputError
from surefoot.hook import layout

_LOOKS = 3  # at a cell that is being written


@dataclass(frozen=True, slots=True)
class Cell:
    """What a rank was doing. `since` is nanoseconds since 1970; steps are None before the first."""

    rank: int
    pid: int
    path: Path
    step: int | None
    completed: int | None
    since: int
    phase: str
    collective: str


def cells(ring_dir: Path, attempt: str) -> list[Cell]:
    """The cells of `attempt`, inner restarts by torchrun included. A file that is not a ring of ours is passed over."""
    found = []
    for path in _rings(ring_dir, attempt):
        try:
            found.append(_read(path))
        except (OSError, InputError):  # going away, being made, or not ours
            continue
    return [cell for cell in found if cell]


def _rings(ring_dir: Path, attempt: str) -> Iterator[Path]:
    try:
        names = os.listdir(ring_dir)
    except OSError:
        return
    for name in names:
        if name.startswith(attempt + ".") and name.endswith(layout.RING_SUFFIX):
            yield ring_dir / name


def _read(path: Path) -> Cell | None:
    """Reads with pread, never by mapping: its owner may cut the file short."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(fd).st_uid not in (os.geteuid(), 0):
            return None
        for _ in range(_LOOKS):
            head = os.pread(fd, layout.HEADER_SIZE, 0)
            header = parse_header(head)
            if len(head) == layout.HEADER_SIZE and (live := layout.read_live(memoryview(head))):
                return Cell(header.rank, header.pid, path, live.step, live.completed, live.since, live.phase, live.collective)
        return None
    finally:
        os.close(fd)
