"""What identifies a device, and what else is known about it."""

from collections.abc import Mapping, Sequence

from pipeline.queries import sql
from pipeline.store import Store


def devices_named(store: Store, ids: Sequence[int]) -> dict[int, Mapping[str, str]]:
    """Device id -> its attributes, of those of `ids` that are in the inventory."""
    return {row["device_id"]: row["attrs"] for row in store.query(sql("devices_named"), {"ids": list(ids)})}
