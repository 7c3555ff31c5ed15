"""Every transition of the attempts of some runs."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import AttemptTransition
from pipeline.store import Store


def attempts_of_runs(store: Store, runs: Sequence[str]) -> list[AttemptTransition]:
    """The transitions, by run, launch and time."""
    return store.read(AttemptTransition, sql("attempts_of_runs"), {"runs": list(runs)})
