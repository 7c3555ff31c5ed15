"""When the agents of nodes were last heard, further back than their readings are looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST
from pipeline.queries import sql
from pipeline.store import Store

NAMED: Final = 200  # nodes up to which they are asked for by name; above, all are


@dataclass(frozen=True, slots=True)
class HeardNode:
    """The agent of `node` was last heard at `at`."""

    node: str
    at: datetime


def nodes_heard(store: Store, nodes: Sequence[str], since: datetime, until: datetime) -> list[HeardNode]:
    """The last word of each of `nodes` between `since` and `until`; of many nodes also that of others."""
    ids = [device_id(HOST, {"node": node}) for node in nodes] if len(nodes) <= NAMED else []
    given = {"ids": ids, "since": since, "until": until}
    return [HeardNode(**row) for row in store.query(sql("nodes_heard"), given)] if nodes else []
