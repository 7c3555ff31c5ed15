"""Maintenance windows that hold, will hold, or ended not long ago."""

from datetime import datetime

from pipeline.hold_records import MaintenanceTransition
from pipeline.queries import sql
from pipeline.store import Store


def maintenance_since(store: Store, since: datetime) -> list[MaintenanceTransition]:
    """The last transition of each that has not ended, or ended after `since`; oldest first."""
    return store.read(MaintenanceTransition, sql("maintenance_since"), {"since": since})
