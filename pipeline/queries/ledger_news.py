"""When anything last happened that changes what a run's time is charged to."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def ledger_news(store: Store) -> datetime:
    """The newest transition of any run, attempt or incident; 1970 where there is none."""
    (row,) = store.query(sql("ledger_news"))
    at: datetime = row["at"]
    return at
