"""How long a run's steps take."""

from dataclasses import dataclass
from datetime import datetime
from math import isnan

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class StepPace:
    """Seconds, without the long phases (init, load_checkpoint, compile, checkpoint, eval). `longest` is over all steps;
    the count and the others leave each attempt's first step out. None where there is no such step."""

    steps: int
    median: float | None
    p99: float | None
    longest: float | None


def step_pace(store: Store, run: str, since: datetime, limit: int = 2000) -> StepPace:
    """The pace of the newest steps of `run` that ended after `since`: at most `limit` rows, of the first four ranks."""
    row = store.query(sql("step_pace"), {"run": run, "since": since, "limit": limit})[0]
    known = {name: None if value is None or isnan(value) else value for name, value in row.items() if name != "steps"}
    return StepPace(steps=row["steps"], **known)
