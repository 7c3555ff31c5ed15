"""How many ranks a run was seen to have."""

from pipeline.queries import sql
from pipeline.store import Store


def run_world(store: Store, run: str) -> int:
    """The largest world size that its launchers said, or that its ranks' numbers show; 0 while neither is known."""
    (row,) = store.query(sql("run_world"), {"run": run})
    return int(row["ranks"])
