"""Where every incident stands: open ones first, the worst of them on top, then the newest resolved ones."""

from pipeline.catalog.layers import Severity
from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def incident_states(store: Store, limit: int) -> list[IncidentTransition]:
    """The last transition of each incident, at most `limit` of them."""
    worst_first = [str(severity) for severity in Severity]
    return store.read(IncidentTransition, sql("incident_states"), {"severities": worst_first, "limit": limit})
