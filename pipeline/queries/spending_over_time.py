"""Where the GPU-seconds of all runs went, in slices of time."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Slice:
    """GPU-seconds of all runs in one category between `at` and `at` + width; `until`: the end of the last entry in it."""

    at: datetime
    category: str
    until: datetime
    gpu_seconds: float


def spending_over_time(store: Store, since: datetime, until: datetime, *, width: int) -> list[Slice]:
    """The ledger over [since, until) cut into slices of `width` seconds; each entry is split over the slices that it crosses."""
    given = {"since": since, "until": until, "width": width}
    return [Slice(**row) for row in store.query(sql("spending_over_time"), given)]
