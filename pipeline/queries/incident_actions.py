"""Every transition of the actions of one incident, oldest first."""

from pipeline.queries import sql
from pipeline.records import ActionTransition
from pipeline.store import Store


def incident_actions(store: Store, incident: str) -> list[ActionTransition]:
    """Every transition of the actions of one incident, in the order in which they were made."""
    return store.read(ActionTransition, sql("incident_actions"), {"incident": incident})
