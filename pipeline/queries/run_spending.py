"""Where the GPU-seconds of a run went, by category and by the incident that they are charged to."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Spending:
    """GPU-seconds of a run in one category; `incident` is "" where none is to blame. The ledger reaches up to `until`."""

    category: str
    incident: str
    gpu_seconds: float
    until: datetime


def run_spending(store: Store, run: str) -> list[Spending]:
    """The ledger of `run` so far, from the newest generation of each segment; empty before its first pass."""
    return [Spending(**row) for row in store.query(sql("run_spending"), {"run": run})]
