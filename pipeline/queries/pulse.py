"""Whether anything happened: row counts that cost nothing to read, so that an idle tick is one query."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Pulse:
    """Rows of the tables that others write; of launchers' signs of life only those after a time."""

    runs: int
    attempts: int
    events: int
    requests: int
    readings: int
    launchers: int


def pulse(store: Store, since: datetime) -> Pulse:
    """The counts now; `launchers` counts from `since`."""
    return Pulse(**store.query(sql("pulse"), {"since": since})[0])
