"""What a request's body says, as rows by table, with what was refused of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from pipeline.records import AttemptTransition, Beat, Change, Event, Live, Record, Request, RunTransition

Row = Mapping[str, Any]
MAX_REASONS: Final = 20  # that are told apart; what is beyond them is counted together
_REASON_LENGTH: Final = 200


class Haste(IntEnum):
    """How soon rows must be queryable."""

    BATCH = 0  # with the batch
    SOON = 1  # a rank's present: 0.3 s
    NOW = 2  # something happened: 0.1 s


HASTE: Final[Mapping[type[Record], Haste]] = {
    Live: Haste.SOON,
    Event: Haste.NOW,
    RunTransition: Haste.NOW,
    AttemptTransition: Haste.NOW,
    Change: Haste.NOW,
    Request: Haste.NOW,
}


@dataclass(slots=True)
class Decoded:
    """Rows of one or more requests. `rejected` counts what was refused, `reasons` says why and how often.

    `kept` counts the points and log records that became rows; `skew` is how far ahead of now the
    furthest refused time stood (seconds). `hurried` lets this request's beats go at once.
    """

    records: dict[type[Record], list[Record]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    kept: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)  # what was kept only in part
    skew: float = 0.0
    hurried: bool = False

    def add(self, record: Record) -> None:
        """Keeps a record."""
        self.records.setdefault(type(record), []).append(record)

    def add_row(self, table: str, row: Row) -> None:
        """Keeps a row of a table without a record class."""
        self.rows.setdefault(table, []).append(row)

    def reject(self, reason: str, count: int = 1) -> None:
        """Counts `count` points or records that are not kept."""
        self.rejected += count
        reason = reason[:_REASON_LENGTH]
        self.reasons[reason if reason in self.reasons or len(self.reasons) < MAX_REASONS else "other reasons"] += count

    def note(self, text: str) -> None:
        """Says once that something was kept only in part."""
        if text not in self.notes and len(self.notes) < MAX_REASONS:
            self.notes.append(text[:_REASON_LENGTH])

    def message(self) -> str:
        """Why things were refused, for the sender; "" where all was kept whole."""
        refused = (f"{count} x {reason}" if count > 1 else reason for reason, count in self.reasons.most_common(5))
        return "; ".join([*refused, *self.notes[:5]])

    def haste(self, of: type[Record]) -> Haste:
        """How soon the records of a class must be queryable."""
        return Haste.NOW if of is Beat and self.hurried else HASTE.get(of, Haste.BATCH)

    @property
    def most_haste(self) -> Haste:
        """How soon the first of these rows must be queryable."""
        return max(map(self.haste, self.records), default=Haste.BATCH)

    @property
    def count(self) -> int:
        """Rows in all."""
        return sum(map(len, self.records.values())) + sum(map(len, self.rows.values()))
