"""Pauses of all acting that hold, will hold, or ended not long ago."""

from datetime import datetime

from pipeline.hold_records import PauseTransition
from pipeline.queries import sql
from pipeline.store import Store


def pauses_since(store: Store, since: datetime) -> list[PauseTransition]:
    """The last transition of each that has not ended, or ended after `since`; oldest first."""
    return store.read(PauseTransition, sql("pauses_since"), {"since": since})
