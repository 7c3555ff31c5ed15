"""What the ranks on a node are doing."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Live
from pipeline.store import Store


def node_ranks(store: Store, node: str, runs: Sequence[str], since: datetime, until: datetime) -> list[Live]:
    """The last row of each rank of `runs` that was on `node` between `since` and `until`, by run and rank."""
    given = {"node": node, "runs": list(runs), "since": since, "until": until}
    return sorted(store.read(Live, sql("node_ranks"), given), key=lambda r: (r.run, r.rank))
