"""Runs whose ledger is not closed yet."""

from pipeline.queries import sql
from pipeline.store import Store


def ledger_pending(store: Store, closed_prefix: str) -> list[str]:
    """Runs without a watermark of the job `closed_prefix` + run, or changed since the last one, oldest first."""
    return [row["run"] for row in store.query(sql("ledger_pending"), {"prefix": closed_prefix})]
