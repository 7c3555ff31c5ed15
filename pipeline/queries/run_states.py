"""Where every run stands, with its newest attempt."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RunState:
    """A run now. `attempt` and `attempt_state` are "" before the first attempt; `ranks` is 0 while not known."""

    run: str
    state: str
    reason: str
    started_at: datetime
    changed_at: datetime
    node: str
    command: str
    exit_code: int | None
    attempt: str
    attempt_state: str
    launches: int
    ranks: int


def run_states(store: Store, limit: int, run: str = "") -> list[RunState]:
    """The runs, or only the one called `run`: those in progress first, then the newest; at most `limit`."""
    return [RunState(**row) for row in store.query(sql("run_states"), {"limit": limit, "run": run})]
