"""The restarts of a run, with what they answered."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.faults import FAULTS
from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RunRestart:
    """A restart: issued at `at` on `attempt`, which had failed by `fault` at `node` and `rank` after completing `last_step`."""

    attempt: str
    new_attempt: str
    at: datetime
    fault: str
    node: str
    rank: int | None
    last_step: int | None


def restarts_of_run(store: Store, run: str, since: datetime) -> list[RunRestart]:
    """The restarts of `run` that were issued after `since`, oldest first."""
    besides = [f.name for f in FAULTS if f.first_action is None]  # what never ends an attempt
    parameters = {"run": run, "since": since, "kind": RESTART_RUN.name, "besides": besides}
    return [RunRestart(**row) for row in store.query(sql("restarts_of_run"), parameters)]
