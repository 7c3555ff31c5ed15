"""What the machines read lately, one row a node."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node's last readings, up to `at`. Busy and pressure are shares (0 to 1) of the time that was asked about; None is not known."""

    node: str
    at: datetime
    cpus: int | None
    memory_total: int | None
    memory_available: int | None
    cpu_busy: float | None
    cpu_pressure: float | None
    memory_pressure: float | None
    io_pressure: float | None


def nodes_now(store: Store, since: datetime, until: datetime) -> list[NodeNow]:
    """Each node that was heard after `since`, up to `until` (a clock that ran ahead is left out), by name."""
    return [NodeNow(**row) for row in store.query(sql("nodes_now"), {"since": since, "until": until})]
