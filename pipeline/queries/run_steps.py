"""Step time over the steps of a run, by rank, in few enough points to draw."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class StepPoint:
    """A bin of steps from `step` on, of one rank in one attempt: mean and longest step time in seconds."""

    rank: int
    attempt: str
    step: int
    seconds: float
    longest: float


def run_steps(store: Store, run: str, since: datetime, until: datetime, *, bins: int, ranks: int) -> list[StepPoint]:
    """At most `bins` bins for each of the `ranks` slowest ranks, over the steps that ended in [since, until].

    Each attempt's first step is left out: what it takes or saves belongs to the start.
    """
    given = {"run": run, "since": since, "until": until, "bins": bins, "ranks": ranks}
    return [StepPoint(**row) for row in store.query(sql("run_steps"), given)]
