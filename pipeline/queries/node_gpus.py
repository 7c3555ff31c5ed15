"""How busy a node's GPUs were over a period."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class GpuSlot:
    """A node's GPUs over one slot of time, from `at`, as shares from 0 to 1: how busy the busiest and the idlest of them were on
    average, and how full the memory of the fullest. None where no GPU told."""

    at: datetime
    busiest: float | None
    idlest: float | None
    fullest: float | None


def node_gpus(store: Store, node: str, since: datetime, until: datetime, *, width: int) -> list[GpuSlot]:
    """Slots of `width` seconds of `node` between `since` and `until`, in order of time; none where no GPU was read."""
    given = {"node": node, "since": since, "until": until, "width": width}
    return [GpuSlot(r["slot"], r["busiest"], r["idlest"], r["fullest"]) for r in store.query(sql("node_gpus"), given)]
