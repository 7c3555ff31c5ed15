"""The newest complete checkpoint of each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.events import CHECKPOINT_COMPLETED
from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of `step` (text, as its event says it) got its completeness mark at `at`."""

    run: str
    at: datetime
    step: str


def run_checkpoints(store: Store, runs: Sequence[str]) -> list[Checkpoint]:
    """The newest complete checkpoint of each of `runs`; a run without one is left out."""
    return [Checkpoint(**row) for row in store.query(sql("run_checkpoints"), {"kind": CHECKPOINT_COMPLETED.name, "runs": list(runs)})]
