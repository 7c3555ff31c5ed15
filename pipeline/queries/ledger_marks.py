"""What has come in of a run's attempts by parts of time: enough to tell which parts of the ledger are out of date."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Mark:
    """`steps` steps and `phases` phases of `attempt` ended in `part`, the last thing at `last_at`; `last_step` is the highest."""

    attempt: str
    part: int
    steps: int
    phases: int
    last_step: int
    last_at: datetime


def ledger_marks(store: Store, run: str, start: datetime, width: float) -> list[Mark]:
    """Parts are `width` seconds long and counted from `start`."""
    return [Mark(**row) for row in store.query(sql("ledger_marks"), {"run": run, "start": start, "width": width})]
