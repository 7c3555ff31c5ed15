"""The steps of an attempt around a stretch of time, with the phases in them that are not the work itself."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A rank's step; phases in seconds, None where it had none."""

    rank: int
    step: int
    started_at: datetime
    ended_at: datetime
    init: float | None
    load_checkpoint: float | None
    compile: float | None
    data: float | None
    checkpoint: float | None
    eval: float | None


def attempt_steps(store: Store, run: str, attempt: str, start: datetime, end: datetime) -> list[StepTimes]:
    """The steps that touch [start, end), and of each rank the last one before and the first one after, by rank and time."""
    given = {"run": run, "attempt": attempt, "start": start, "end": end}
    return [StepTimes(**row) for row in store.query(sql("attempt_steps"), given)]
