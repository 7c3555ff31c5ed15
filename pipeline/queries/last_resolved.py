"""When an incident was last resolved."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def last_resolved(store: Store) -> datetime | None:
    """The time of the newest transition to resolved; None where there is none."""
    return next((row["at"] for row in store.query(sql("last_resolved"))), None)
