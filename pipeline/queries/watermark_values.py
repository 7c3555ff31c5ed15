"""Where periodic jobs stand."""

from pipeline.queries import sql
from pipeline.store import Store


def watermark_values(store: Store, prefix: str) -> dict[str, str]:
    """The newest value of each job whose name begins with `prefix`."""
    return {row["job"]: row["value"] for row in store.query(sql("watermark_values"), {"prefix": prefix})}
