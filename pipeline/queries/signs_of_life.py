"""When each part of Surefoot was last heard: agents by their readings, launchers and our own parts by their beats."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class LastSign:
    """`component` (agent, launcher, jobs, ingest) on `node`, for `run` where it serves one, was last heard at `at`."""

    component: str
    node: str
    run: str
    at: datetime
    state: str


def signs_of_life(store: Store, since: datetime) -> list[LastSign]:
    """The last sign of everything that was heard after `since`."""
    return [LastSign(**row) for row in store.query(sql("signs_of_life"), {"since": since})]
