"""Tokens of inserts that a kill cut short, forgotten before the database is opened, so that their retry is stored.

A MergeTree table that is not replicated notes an insert's token on disk, and only then renames the new part into its
place. A process killed between the two comes back knowing the token and not the rows: it would take the retry for a
duplicate, acknowledge it and store nothing. So a token counts only while its part is there, or one it was merged into.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOGS: Final = "deduplication_logs"
_ADDED: Final = b"1"  # an entry's first field; the others are the part's name and the block's id
_PART: Final = re.compile(r"(.+?)_(\d+)_(\d+)_\d+(?:_\d+)?")  # the last: of a mutation


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks (one an insert) that a part of a partition holds, by its name."""

    partition: str
    first: int
    last: int

    def holds(self, other: "Blocks") -> bool:
        """Whether all of `other`'s blocks are among these."""
        return self.partition == other.partition and self.first <= other.first and other.last <= self.last


def forget_cut_short(data: Path) -> int:
    """Drops such tokens from every table under `data`, the folder of a database that nobody has open. How many there were."""
    return sum(_mend(log, parts) for logs in data.glob(f"store/*/*/{LOGS}") for parts in [_parts(logs.parent)] for log in _files(logs))


def _files(logs: Path) -> Iterable[Path]:
    return sorted(logs.glob("deduplication_log_*.txt"))


def _parts(table: Path) -> list[Blocks]:
    return [found for entry in os.scandir(table) if entry.is_dir() and (found := _blocks(entry.name))]


def _blocks(name: str) -> Blocks | None:
    found = _PART.fullmatch(name)
    return Blocks(found[1], int(found[2]), int(found[3])) if found else None


def _mend(log: Path, parts: list[Blocks]) -> int:
    lines = log.read_bytes().splitlines(keepends=True)
    kept = list(_kept(lines, parts))
    if len(kept) < len(lines):
        fresh = log.with_suffix(".new")
        with fresh.open("wb") as f:
            f.writelines(kept)
            f.flush()
            os.fsync(f.fileno())
        fresh.replace(log)
    return len(lines) - len(kept)


def _kept(lines: Iterable[bytes], parts: list[Blocks]) -> Iterator[bytes]:
    """The lines but for those that add a token whose part is nowhere. What is of another form stays as it is."""
    for line in lines:
        fields = line.rstrip(b"\n").split(b"\t")
        blocks = _blocks(fields[1].decode("utf-8", "replace")) if len(fields) == 3 and fields[0] == _ADDED else None
        if blocks is None or any(part.holds(blocks) for part in parts):
            yield line
