"""What each file system and link was like when it was first seen: what has been so for ever is no fault."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.queries.readings_since import DeviceReading, as_readings
from pipeline.store import Store


def readings_first(store: Store, since: datetime) -> list[DeviceReading]:
    """Each device's first reading after `since`, of the families whose rules ask for a change."""
    return as_readings(store.query(sql("readings_first"), {"since": since}))
