"""Every transition of the findings of one incident, oldest first."""

from pipeline.queries import sql
from pipeline.records import FindingTransition
from pipeline.store import Store


def incident_findings(store: Store, incident: str) -> list[FindingTransition]:
    """Every transition of the findings of one incident, in the order in which they were made."""
    return store.read(FindingTransition, sql("incident_findings"), {"incident": incident})
