"""Where some incidents stand."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import IncidentTransition
from pipeline.store import Store


def incidents_named(store: Store, incidents: Sequence[str]) -> list[IncidentTransition]:
    """The last transition of each of `incidents`."""
    return store.read(IncidentTransition, sql("incidents_named"), {"incidents": list(incidents)})
