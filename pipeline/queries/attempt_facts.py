"""What attempts ran with, as their launchers told."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import AttemptFacts
from pipeline.store import Store


def attempt_facts(store: Store, attempts: Sequence[str]) -> list[AttemptFacts]:
    """The last word of each node of `attempts`."""
    return store.read(AttemptFacts, sql("attempt_facts"), {"attempts": list(attempts)})
