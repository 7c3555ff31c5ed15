"""What people changed in a period."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Change
from pipeline.store import Store


def changes_between(store: Store, since: datetime, until: datetime) -> list[Change]:
    """The changes that took effect in [since, until), newest first."""
    return store.read(Change, sql("changes_between"), {"since": since, "until": until})
