"""The times of incidents that a time to repair is made of."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Repair:
    """An incident's times. `resolved` is None while it is open; where the onset is not known, it is when the incident was detected."""

    incident: str
    onset: datetime
    recovered: datetime | None = None
    caught_up: datetime | None = None
    resolved: datetime | None = None


def repairs(store: Store, since: datetime) -> list[Repair]:
    """The incidents that are open or were resolved at `since` or later, in order of their onset."""
    return [Repair(**row) for row in store.query(sql("repairs"), {"since": since})]
