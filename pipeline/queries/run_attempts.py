"""When each attempt of a run was launched, and when its ranks completed their first step."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class AttemptStart:
    """`first_step_at` is the earliest rank's, `all_first_step_at` the latest's; None before any step."""

    attempt: str
    launched_at: datetime
    ranks: int
    first_step_at: datetime | None
    all_first_step_at: datetime | None
    ranks_with_steps: int


def run_attempts(store: Store, run: str) -> list[AttemptStart]:
    """The attempts of `run`, in the order of their launch."""
    return [AttemptStart(**row) for row in store.query(sql("run_attempts"), {"run": run})]
