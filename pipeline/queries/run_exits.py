"""When each rank of each attempt of a run ended."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.events import RANK_EXITED
from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class RankExit:
    """A rank's process ended at `at`, as its launcher saw it."""

    attempt: str
    rank: int
    at: datetime


def run_exits(store: Store, run: str) -> list[RankExit]:
    """The exits of `run`'s ranks, those of unknown rank left out."""
    return [RankExit(**row) for row in store.query(sql("run_exits"), {"run": run, "kind": RANK_EXITED.name})]
