"""Which segments of a run the ledger holds."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Written:
    """The newest generation of a segment, and the time at which it ends."""

    attempt: str
    part: int
    generation: int
    until: datetime


def ledger_written(store: Store, run: str) -> list[Written]:
    """The segments of `run`."""
    return [Written(**row) for row in store.query(sql("ledger_written"), {"run": run})]
