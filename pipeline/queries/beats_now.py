"""The last sign of life of each launcher, and of ingest itself."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Beat
from pipeline.store import Store


def beats_now(store: Store, since: datetime) -> list[Beat]:
    """The last beat of each launcher and ingest that was heard after `since`."""
    return store.read(Beat, sql("beats_now"), {"since": since})
