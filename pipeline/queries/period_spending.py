"""Where the GPU time of a period went, exactly."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class PeriodSpending:
    """GPU-microseconds of a run in one category; `incident` is "" where none is to blame."""

    run: str
    category: str
    incident: str
    gpu_micros: int


def period_spending(store: Store, since: datetime, until: datetime) -> list[PeriodSpending]:
    """The ledger within [since, until), entries cut at its edges, from the newest generation of each segment."""
    return [PeriodSpending(**row) for row in store.query(sql("period_spending"), {"since": since, "until": until})]
