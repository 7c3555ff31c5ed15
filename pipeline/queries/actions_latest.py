"""Where the newest actions stand."""

from pipeline.queries import sql
from pipeline.records import ActionTransition
from pipeline.store import Store


def actions_latest(store: Store, limit: int) -> list[ActionTransition]:
    """The last transition of each of the `limit` actions that changed last, newest first."""
    return store.read(ActionTransition, sql("actions_latest"), {"limit": limit})
