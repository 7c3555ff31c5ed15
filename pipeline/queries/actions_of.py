"""The actions about which something may still happen, and those of some incidents or runs."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import ActionTransition
from pipeline.store import Store


def actions_of(store: Store, incidents: Sequence[str], runs: Sequence[str]) -> list[ActionTransition]:
    """The last transition of each action that is not at its end, or belongs to one of `incidents` or `runs`, oldest first."""
    return store.read(ActionTransition, sql("actions_of"), {"incidents": list(incidents), "runs": list(runs)})
