"""What every rank of some runs is doing."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Live
from pipeline.store import Store


def live_now(store: Store, runs: Sequence[str], since: datetime, until: datetime) -> list[Live]:
    """The last row of each rank of each attempt between `since` and `until` (a clock that ran ahead is left out)."""
    return store.read(Live, sql("live_now"), {"runs": list(runs), "since": since, "until": until})
