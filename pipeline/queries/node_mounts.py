"""How full a node's file systems were over a period."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.queries.mounts_fullest import is_real
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class MountSlot:
    """A file system over one slot of time, from `at`; `used` is a share, 0 to 1."""

    at: datetime
    mount_point: str
    used: float


def node_mounts(store: Store, node: str, since: datetime, until: datetime, *, width: int, limit: int) -> list[MountSlot]:
    """Slots of `width` seconds of the `limit` file systems of `node` that are fullest at the end, between `since` and `until`."""
    given = {"node": node, "since": since, "until": until, "width": width}
    rows = [r for r in store.query(sql("node_mounts"), given) if is_real(r["mount_point"], r["kind"])]
    last = {r["mount_point"]: r["used"] for r in rows}
    kept = set(sorted(last, key=lambda mount: (-last[mount], mount))[:limit])
    return [MountSlot(r["slot"], r["mount_point"], r["used"]) for r in rows if r["mount_point"] in kept]
