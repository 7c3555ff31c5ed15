"""What an incident cost: its GPU-seconds by category, from the newest generation of each ledger segment."""

from dataclasses import dataclass

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Spent:
    """GPU-seconds in one category of the ledger."""

    category: str
    gpu_seconds: float


def incident_cost(store: Store, incident: str) -> list[Spent]:
    """The GPU-seconds that the ledger charges to `incident`, largest first; empty before the ledger has seen it."""
    return [Spent(**row) for row in store.query(sql("incident_cost"), {"incident": incident})]
