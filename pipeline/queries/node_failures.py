"""Why collectors of a node's agent last failed."""

from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def node_failures(store: Store, node: str) -> list[Event]:
    """The last failure of each collector (`code`) of the agent on `node`, newest first."""
    return store.read(Event, sql("node_failures"), {"node": node})
