"""Which rows of the spool go to the store together, and under which token. Pure.

A token is made of the name of a chunk or segment and the table: it is the same on every try, also by
another process after a crash, and the rows under it are the same too. So whatever is repeated is stored once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from pipeline.otlp.decoded import Decoded, Haste, Row
from pipeline.records import RECORDS, Record, Step, Transition

MAX_DAYS: Final = 90  # partitions of one insert: the store refuses more than 100
INVENTORY: Final = {"devices": "device_id", "series": "series"}  # tables of what there is, and their keys
_STATES: Final = frozenset(cls.table for cls in RECORDS if issubclass(cls, Transition))
_TIMES: Final = ("ts", "Timestamp")


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry of the spool: the sender's id of it, and what it says."""

    batch: str
    decoded: Decoded


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one table for one insert: all of them records, or all of them plain rows."""

    token: str
    table: str
    rows: Sequence[Record] | Sequence[Row]


def hurried(chunk: str, kept: Iterable[Kept]) -> list[Batch]:
    """The batches of a chunk's rows that must not wait for the segment."""
    return _by_table(chunk, _records(kept, lambda haste: haste > Haste.BATCH))


def patient(segment: str, kept: Sequence[Kept]) -> list[Batch]:
    """The batches of a segment's other rows."""
    rows: dict[str, list[Any]] = {}
    for k in kept:
        for table, more in k.decoded.rows.items():
            rows.setdefault(table, []).extend(more)
    return _by_table(segment, _records(kept, lambda haste: haste is Haste.BATCH) | rows)


def _records(kept: Iterable[Kept], wanted: Callable[[Haste], bool]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for k in kept:
        for cls, records in k.decoded.records.items():
            if wanted(k.decoded.haste(cls)):
                found.setdefault(cls.table, []).extend(records)
    return found


def _by_table(name: str, rows: dict[str, list[Any]]) -> list[Batch]:
    return [batch for table in sorted(rows, key=_order) for batch in _split(f"{name}:{table}", table, rows[table])]


def _order(table: str) -> tuple[int, str]:
    """What other rows refer to comes first, changes of state last: who reads that an attempt ended finds also how its ranks did."""
    return 0 if table in INVENTORY else 2 if table in _STATES else 1, table


def _split(token: str, table: str, rows: list[Any]) -> list[Batch]:
    """One batch, or several where the rows are of too many days for one insert."""
    days = sorted({day for row in rows if (day := _day(row))})
    if len(days) <= MAX_DAYS:
        return [Batch(token, table, rows)]
    part = {day: i // MAX_DAYS for i, day in enumerate(days)}
    parts: dict[int, list[Any]] = {}
    for row in rows:
        parts.setdefault(part[day] if (day := _day(row)) else 0, []).append(row)
    return [Batch(f"{token}/{i}", table, parts[i]) for i in sorted(parts)]


def _day(row: Any) -> date | None:
    """The day by which the row's table is partitioned; None where the table has no parts."""
    if isinstance(row, Step):
        return row.ended_at.date()
    at = getattr(row, "at", None) if isinstance(row, Record) else next((row[t] for t in _TIMES if t in row), None)
    return at.date() if isinstance(at, datetime) else None
