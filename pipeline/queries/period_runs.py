"""The runs of a period."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class PeriodRun:
    """A run; `ended_at` is None while it goes on, `ranks` 0 where it never told how many it has."""

    run: str
    started_at: datetime
    ended_at: datetime | None
    ranks: int


def period_runs(store: Store, since: datetime, until: datetime) -> list[PeriodRun]:
    """The runs that were up at some time in [since, until)."""
    return [PeriodRun(**row) for row in store.query(sql("period_runs"), {"since": since, "until": until})]
