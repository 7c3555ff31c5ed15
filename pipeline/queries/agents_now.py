"""When each node's agent last sent its readings."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def agents_now(store: Store, since: datetime) -> dict[str, datetime]:
    """Node -> time of its last readings, of those heard after `since`."""
    return {row["node"]: row["last"] for row in store.query(sql("agents_now"), {"since": since})}
