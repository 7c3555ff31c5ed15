"""Every transition of a run's attempts, oldest first."""

from pipeline.queries import sql
from pipeline.records import AttemptTransition
from pipeline.store import Store


def attempt_history(store: Store, run: str) -> list[AttemptTransition]:
    """The attempt transitions of `run` in the order in which they were made; at most the newest 1000."""
    return store.read(AttemptTransition, sql("attempt_history"), {"run": run})
