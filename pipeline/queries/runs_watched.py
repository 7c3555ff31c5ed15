"""The runs that somebody has to look after."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run as its last transition left it."""

    run: str
    state: str
    reason: str
    node: str
    exit_code: int | None
    started_at: datetime
    changed_at: datetime
    checkpoints: str


def runs_watched(store: Store, since: datetime, names: Sequence[str] = ()) -> list[WatchedRun]:
    """The runs in progress, those that changed after `since`, and those in `names`, by name."""
    return [WatchedRun(**row) for row in store.query(sql("runs_watched"), {"since": since, "names": list(names)})]
