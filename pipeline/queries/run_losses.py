"""The loss of a run over its steps, in few enough points to draw."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The mean loss of a bin of steps from `step` on, in one attempt; None where every loss in it was not finite."""

    attempt: str
    step: int
    loss: float | None
    nonfinite: int


def run_losses(store: Store, run: str, since: datetime, until: datetime, *, bins: int) -> list[LossPoint]:
    """At most `bins` bins an attempt over the steps that ended in [since, until], of the lowest rank that has a loss."""
    given = {"run": run, "since": since, "until": until, "bins": bins}
    return [LossPoint(**row) for row in store.query(sql("run_losses"), given)]
