"""The first and the last completed step of each rank in each attempt of a run."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class StepRange:
    """A rank's first step of an attempt, and when its last one ended."""

    attempt: str
    rank: int
    step: int
    started_at: datetime
    ended_at: datetime
    last_ended_at: datetime


def run_first_steps(store: Store, run: str, until: datetime) -> list[StepRange]:
    """Over the steps of `run` that ended by `until`."""
    return [StepRange(**row) for row in store.query(sql("run_first_steps"), {"run": run, "until": until})]
