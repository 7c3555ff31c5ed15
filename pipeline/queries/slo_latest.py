"""Each figure as it was computed last."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.records import SloResult
from pipeline.store import Store


def slo_latest(store: Store, since: datetime) -> list[SloResult]:
    """The newest result of each figure and window that was written at `since` or later."""
    return store.read(SloResult, sql("slo_latest"), {"since": since})
