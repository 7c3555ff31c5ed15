"""How fast runs are going: the last step completed and the recent step time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RunPace:
    """`step` completed at `at`; `step_seconds` is the median over the window, None where no step fell into it."""

    run: str
    step: int
    at: datetime
    step_seconds: float | None
    loss: float | None


def run_pace(store: Store, runs: Sequence[str], since: datetime) -> list[RunPace]:
    """The pace of each of `runs` that completed any step; the median is over steps that ended after `since`."""
    return [RunPace(**row) for row in store.query(sql("run_pace"), {"runs": list(runs), "since": since})]
