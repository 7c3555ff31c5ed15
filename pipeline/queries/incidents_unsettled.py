"""The incidents about which something may still happen."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def incidents_unsettled(store: Store, since: datetime) -> list[IncidentTransition]:
    """The last transition of each incident that is not resolved, or was resolved after `since`, oldest first."""
    return store.read(IncidentTransition, sql("incidents_unsettled"), {"since": since})
