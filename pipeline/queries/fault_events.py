"""Events that are signs of a fault."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def fault_events(store: Store, kinds: Sequence[str], since: datetime, until: datetime) -> list[Event]:
    """The events of `kinds` after `since`, up to `until`, oldest first; an event that was sent twice is there once."""
    return store.read(Event, sql("fault_events"), {"kinds": list(kinds), "since": since, "until": until})
