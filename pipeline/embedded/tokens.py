"""Tokens of inserts that a kill cut short, forgotten before the database is opened, so that their retry is stored.

A MergeTree table that is not replicated notes an insert's token on disk, and only then renames the new part into its
place. A process killed between the two comes back knowing the token and not the rows: it would take the retry for a
duplicate, acknowledge it and store nothing. So a token counts only while its part is there, or one it was merged into.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

LOGS: Final = "deduplication_logs"
_ADDED: Final = b"1"  # an entry's first field; the others are the part's name and the block's id
_PART: Final = re.compile(r"(.+?)_(\d+)_(\d+)_\d+(?:_\d+)?")  # the last: of a mutation


Parts = Mapping[str, Sequence[tuple[int, int]]]
"""Of each partition the blocks (one an insert) that its parts hold: the first and the last of each part."""


def forget_cut_short(data: Path) -> int:
    """Drops such tokens from every table under `data`, the folder of a database that nobody has open. How many there were."""
    forgotten = 0
    for logs in data.glob(f"store/*/*/{LOGS}"):
        parts = _parts(logs.parent)
        forgotten += sum(_mend(log, parts) for log in logs.glob("deduplication_log_*.txt"))
    return forgotten


def _parts(table: Path) -> Parts:
    parts: dict[str, list[tuple[int, int]]] = {}
    for entry in os.scandir(table):
        if entry.is_dir() and (found := _blocks(entry.name)):
            partition, first, last = found
            parts.setdefault(partition, []).append((first, last))
    return parts


def _blocks(name: str) -> tuple[str, int, int] | None:
    """The partition of a part, and the first and the last of its blocks, by its name."""
    found = _PART.fullmatch(name)
    return (found[1], int(found[2]), int(found[3])) if found else None


def _mend(log: Path, parts: Parts) -> int:
    lines = log.read_bytes().splitlines(keepends=True)
    kept = list(_kept(lines, parts))
    if len(kept) < len(lines):
        fresh = log.with_suffix(".new")
        with fresh.open("wb") as f:
            f.writelines(kept)
            f.flush()
            os.fsync(f.fileno())
        fresh.replace(log)
        _keep_names(log.parent)
    return len(lines) - len(kept)


def _keep_names(folder: Path) -> None:
    """Brings the names in `folder` to disk: a rename that a power cut undid would bring the tokens back."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _kept(lines: Iterable[bytes], parts: Parts) -> Iterator[bytes]:
    """The lines but for those that add a token whose part is nowhere. What is of another form stays as it is."""
    for line in lines:
        fields = line.rstrip(b"\n").split(b"\t")
        added = _blocks(fields[1].decode("utf-8", "replace")) if len(fields) == 3 and fields[0] == _ADDED else None
        if added is None or _there(added, parts):
            yield line


def _there(added: tuple[str, int, int], parts: Parts) -> bool:
    partition, first, last = added
    return any(begin <= first and last <= end for begin, end in parts.get(partition, ()))
