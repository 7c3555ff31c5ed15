"""When a run first got to a step."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def step_reached(store: Store, run: str, attempts: Sequence[str], step: int = 0) -> datetime | None:
    """When any rank of `attempts` (restarts inside them too) first completed `step` or a later one; None: not yet."""
    rows = store.query(sql("step_reached"), {"run": run, "attempts": list(attempts), "step": step})
    return rows[0]["reached"] if rows else None
