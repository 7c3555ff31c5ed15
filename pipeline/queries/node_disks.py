"""How much a node's disks moved over a period."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class DiskSlot:
    """All disks of a node together over one slot of time, from `at`: bytes a second, None where not known."""

    at: datetime
    read: float | None
    written: float | None


def node_disks(store: Store, node: str, since: datetime, until: datetime, *, width: int, gap: float) -> list[DiskSlot]:
    """Slots of `width` seconds between `since` and `until`; what a counter grew by over more than `gap` seconds is left out."""
    given = {"node": node, "since": since, "until": until, "width": width, "gap": gap}
    return [DiskSlot(at=row.pop("slot"), **row) for row in store.query(sql("node_disks"), given)]
