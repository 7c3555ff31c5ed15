"""Which attempts got beyond their start."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.store import Store


def attempts_stepped(store: Store, runs: Sequence[str], attempts: Sequence[str]) -> set[str]:
    """Those of `attempts`, of `runs`, in which a rank completed a step; a restart inside one counts by its own name."""
    return {row["attempt"] for row in store.query(sql("attempts_stepped"), {"runs": list(runs), "attempts": list(attempts)})}
