"""How far attempts came."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.store import Store


def last_step(store: Store, run: str, attempts: Sequence[str]) -> int | None:
    """The last step that any rank of `attempts` (restarts inside them too) completed; None where there is none."""
    rows = store.query(sql("last_step"), {"run": run, "attempts": list(attempts)})
    return rows[0]["last"] if rows else None
