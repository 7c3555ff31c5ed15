"""How often findings were opened before."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.store import Store


def finding_counts(store: Store, keys: Sequence[str]) -> dict[str, int]:
    """Key -> how many findings of that key were ever opened; keys of none are left out."""
    return {row["key"]: row["opened"] for row in store.query(sql("finding_counts"), {"keys": list(keys)})}
