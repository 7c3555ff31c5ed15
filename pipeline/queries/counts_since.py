"""What the counters said that rules look at over a while: each value once, with when it was first and last read."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pipeline.queries import sql
from pipeline.store import Store


class Count(NamedTuple):
    """A value of a device's counter, and when it was first and last read."""

    device_id: int
    metric: str
    value: float
    first: datetime
    last: datetime


def counts_since(store: Store, since: datetime) -> Sequence[Count]:
    """The values after `since`, oldest first."""
    rows = store.query(sql("counts_since"), {"since": since})
    found = (Count(row["device_id"], row["metric"], float(row["value"]), row["first"], row["last"]) for row in rows)
    return sorted(found, key=lambda count: count.first)
