"""The findings that are open."""

from pipeline.queries import sql
from pipeline.records import FindingTransition
from pipeline.store import Store


def findings_open(store: Store) -> list[FindingTransition]:
    """The last transition of each open finding, oldest first."""
    return store.read(FindingTransition, sql("findings_open"))
