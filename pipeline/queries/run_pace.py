"""How fast runs go, or went: the last step completed and the step time up to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RunPace:
    """`step` completed at `at`; `step_seconds` is the median over the last steps, `loss` the last one known of those."""

    run: str
    step: int
    at: datetime
    step_seconds: float
    loss: float | None


def run_pace(store: Store, runs: Sequence[str], *, seconds: int) -> list[RunPace]:
    """The pace of each of `runs` that completed any step, over its own last `seconds` up to its last step."""
    return [RunPace(**row) for row in store.query(sql("run_pace"), {"runs": list(runs), "seconds": seconds})]
