"""Every transition of a run's incidents, oldest first."""

from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def run_incidents(store: Store, run: str) -> list[IncidentTransition]:
    """The incident transitions of `run` in the order in which they were made."""
    return store.read(IncidentTransition, sql("run_incidents"), {"run": run})
