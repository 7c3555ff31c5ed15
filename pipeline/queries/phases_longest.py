"""The longest that each phase of a run has ever taken."""

from datetime import datetime

from pipeline.catalog.events import PHASE
from pipeline.queries import sql
from pipeline.store import Store


def phases_longest(store: Store, run: str, since: datetime) -> dict[str, float]:
    """Phase -> seconds, inside steps and outside them, of those that ended after `since`."""
    rows = store.query(sql("phases_longest"), {"run": run, "kind": PHASE.name, "since": since})
    return {row["phase"]: row["seconds"] for row in rows}
