"""What each rank of an attempt was doing when it was last seen."""

from pipeline.queries import sql
from pipeline.records import Live
from pipeline.store import Store


def run_ranks(store: Store, run: str, attempt: str) -> list[Live]:
    """The last live row of each rank of `attempt` (of its newest inner restart), longest without progress first; at most 64."""
    return store.read(Live, sql("run_ranks"), {"run": run, "attempt": attempt})
