"""The incidents of a node: those that name it, and those with a finding on it."""

from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def node_incidents(store: Store, node: str, *, limit: int) -> list[IncidentTransition]:
    """The last transition of each, open ones first, then the newest; at most `limit`."""
    return store.read(IncidentTransition, sql("node_incidents"), {"node": node, "limit": limit})
