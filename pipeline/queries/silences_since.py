"""Silences that hold, will hold, or ended not long ago."""

from datetime import datetime

from pipeline.hold_records import SilenceTransition
from pipeline.queries import sql
from pipeline.store import Store


def silences_since(store: Store, since: datetime) -> list[SilenceTransition]:
    """The last transition of each that has not ended, or ended after `since`; oldest first."""
    return store.read(SilenceTransition, sql("silences_since"), {"since": since})
