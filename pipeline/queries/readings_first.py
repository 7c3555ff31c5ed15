"""What each file system and link was like when it was first seen: what has been so for ever is no fault."""

from collections.abc import Iterable
from datetime import datetime

from pipeline.catalog.metrics import Family
from pipeline.queries import sql
from pipeline.queries.readings_since import DeviceReading, as_readings
from pipeline.store import Store


def readings_first(store: Store, families: Iterable[Family], since: datetime) -> list[DeviceReading]:
    """Each device's first reading after `since`, of `families`."""
    asked = (store.query(sql("readings_first"), {"since": since, "family": family.name}) for family in families)
    return [reading for rows in asked for reading in as_readings(rows)]
