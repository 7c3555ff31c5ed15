"""Finds the checkpoint to resume from: the newest one that is complete on disk, whatever a pointer file says."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from surefoot.hook.layout import MARK_NAME

_DEPTH: Final = 3  # folders below the root that are looked into
_MARK_LIMIT: Final = 16 << 20  # bytes of a mark that are read


@dataclass(frozen=True, slots=True)
class Mark:
    """A completeness mark: the step, and each file of the checkpoint with its size in bytes."""

    folder: Path
    step: int
    files: dict[str, int]


def newest_verified(root: Path) -> Mark | None:
    """The mark under `root` (or in itself) of the checkpoint with the highest step whose files all exist with their sizes.

    None where there is none. Reads names and sizes only.
    """
    marks = sorted(_marks(root), key=lambda m: (m.step, _written(m.folder)), reverse=True)
    return next((m for m in marks if verified(m)), None)


def verified(mark: Mark) -> bool:
    """Whether every file of the mark is there with its size, inside the mark's folder. A mark of no files proves nothing."""
    return bool(mark.files) and all(_inside(name) and _size(mark.folder / name) == size for name, size in mark.files.items())


def read_mark(path: Path) -> Mark | None:
    """The mark in the file `path`; None where it cannot be read or is of another form."""
    try:
        with path.open("rb") as f:
            given = json.loads(f.read(_MARK_LIMIT))
    except (OSError, ValueError):
        return None
    if not isinstance(given, dict) or given.get("version") != 1:
        return None
    step, files = given.get("step"), given.get("files")
    if type(step) is not int or not isinstance(files, dict) or any(type(size) is not int for size in files.values()):
        return None
    return Mark(path.parent, step, files)


def _marks(root: Path) -> Iterator[Mark]:
    top = len(root.parts)
    for folder, inner, names in os.walk(root):
        here = Path(folder)
        if MARK_NAME in names and (mark := read_mark(here / MARK_NAME)):
            yield mark
            inner.clear()  # a checkpoint holds no other checkpoint
        if len(here.parts) - top >= _DEPTH:
            inner.clear()


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _written(folder: Path) -> float:
    try:
        return (folder / MARK_NAME).stat().st_mtime
    except OSError:
        return 0.0
