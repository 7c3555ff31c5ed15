"""What happened on a node."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def node_events(store: Store, node: str, since: datetime, without: Sequence[str], *, limit: int) -> list[Event]:
    """The newest `limit` events of `node` after `since`, newest first, but for the kinds in `without`."""
    return store.read(Event, sql("node_events"), {"node": node, "since": since, "without": list(without), "limit": limit})
