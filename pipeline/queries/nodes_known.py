"""The nodes of the inventory: all whose agent was ever heard."""

from dataclasses import dataclass

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node, and how many GPUs its agent has told of."""

    node: str
    gpus: int


def nodes_known(store: Store) -> list[KnownNode]:
    """Every node of the inventory, by name."""
    return [KnownNode(**row) for row in store.query(sql("nodes_known"))]
