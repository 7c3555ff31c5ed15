"""How often findings were opened before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Earlier:
    """How many findings of a key were ever opened, and when the last of them changed."""

    opened: int
    last: datetime


def finding_counts(store: Store, keys: Sequence[str]) -> dict[str, Earlier]:
    """By key; keys of none are left out."""
    return {row["key"]: Earlier(row["opened"], row["last"]) for row in store.query(sql("finding_counts"), {"keys": list(keys)})}
