"""What each file system was like when it was first seen: what has been so for ever is no fault."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.queries.readings_since import DeviceReading, as_readings
from pipeline.store import Store


def readings_first(store: Store, since: datetime) -> list[DeviceReading]:
    """Each mount's first reading after `since`."""
    return as_readings(store.query(sql("readings_first"), {"since": since}))
