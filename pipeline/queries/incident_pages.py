"""Every transition of the notifications of one incident, oldest first."""

from pipeline.queries import sql
from pipeline.records import NotificationTransition
from pipeline.store import Store


def incident_pages(store: Store, incident: str) -> list[NotificationTransition]:
    """Every transition of the notifications of one incident, in the order in which they were made."""
    return store.read(NotificationTransition, sql("incident_pages"), {"incident": incident})
