"""Which notifications of some incidents were queued."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.store import Store


def pages_queued(store: Store, incidents: Sequence[str]) -> set[str]:
    """The ids of the notifications of `incidents`."""
    return {row["notification"] for row in store.query(sql("pages_queued"), {"incidents": list(incidents)})}
