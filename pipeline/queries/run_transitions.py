"""Every transition of a run, oldest first."""

from pipeline.queries import sql
from pipeline.records import RunTransition
from pipeline.store import Store


def run_transitions(store: Store, run: str) -> list[RunTransition]:
    """The transitions of `run` itself in the order in which they were made."""
    return store.read(RunTransition, sql("run_transitions"), {"run": run})
