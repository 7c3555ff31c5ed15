"""How busy a machine was over a period, in few enough points to draw."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST
from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class HostSlot:
    """A machine over one slot of time, from `at`. All are shares, 0 to 1, None where not known: of all CPUs' time, of memory and of
    /dev/shm used, and of the time in which a task waited for a CPU, for memory, for I/O."""

    at: datetime
    cpu_busy: float | None
    cpu_iowait: float | None
    memory_used: float | None
    shm_used: float | None
    cpu_pressure: float | None
    memory_pressure: float | None
    io_pressure: float | None


def node_history(store: Store, node: str, since: datetime, until: datetime, *, width: int, gap: float) -> list[HostSlot]:
    """Slots of `width` seconds of `node` between `since` and `until`; one without a reading is left out, and so is what a counter
    grew by over more than `gap` seconds."""
    given = {"device": device_id(HOST, {"node": node}), "since": since, "until": until, "width": width, "gap": gap}
    return [HostSlot(at=row.pop("slot"), **row) for row in store.query(sql("node_history"), given)]
