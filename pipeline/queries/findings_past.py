"""The findings of incidents that are over."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import FindingTransition
from pipeline.store import Store


def findings_past(store: Store, incidents: Sequence[str]) -> list[FindingTransition]:
    """The last transition of each cleared finding of `incidents`, in the order in which they were cleared."""
    return store.read(FindingTransition, sql("findings_past"), {"incidents": list(incidents)})
