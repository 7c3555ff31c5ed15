"""Every transition of one incident, oldest first."""

from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def incident_history(store: Store, incident: str) -> list[IncidentTransition]:
    """Every transition of one incident, in the order in which they were made."""
    return store.read(IncidentTransition, sql("incident_history"), {"incident": incident})
