"""The restarts of a run, with what they answered."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.faults import LAUNCHER_LOST, RESTART_LOOP, TELEMETRY_LOST
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
    besides = [TELEMETRY_LOST.name, LAUNCHER_LOST.name, RESTART_LOOP.name]  # what never ends an attempt
    parameters = {"run": run, "since": since, "kind": RESTART_RUN.name, "besides": besides}
    return [RunRestart(**row) for row in store.query(sql("restarts_of_run"), parameters)]
