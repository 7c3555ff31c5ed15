"""The completeness mark: written last into a checkpoint's folder, it says which files make the checkpoint."""

import json
import os
from pathlib import Path

from surefoot.hook.layout import MARK_NAME


def complete(folder: Path, step: int) -> int:
    """Mark the checkpoint of `step` in `folder` as complete, as it is there now; gives its size in bytes.

    For one rank, after all shards are durable. The mark holds every file's size and appears whole or not
    at all. Raises OSError.
    """
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in _files(folder)}
    mark = {"version": 1, "step": step, "files": files}
    partial = folder / f".{MARK_NAME}.{os.getpid()}"
    try:
        with partial.open("w", encoding="utf-8") as out:
            json.dump(mark, out)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(folder / MARK_NAME)
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(folder)
    return sum(files.values())


def _files(folder: Path) -> list[Path]:
    """The checkpoint's own files, sorted; no mark of an earlier time, finished or not."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and MARK_NAME not in path.name)


def _sync_folder(folder: Path) -> None:
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(at)
    finally:
        os.close(at)
