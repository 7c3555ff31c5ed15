"""What launchers told: ranks and commands that ended, and answers to requests."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.catalog.events import ACTION_PROGRESS, COMMAND_EXITED, RANK_EXITED
from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def launcher_news(store: Store, runs: Sequence[str], since: datetime) -> list[Event]:
    """Those events of `runs` after `since`, oldest first; an event that was sent twice is there once."""
    kinds = [RANK_EXITED.name, COMMAND_EXITED.name, ACTION_PROGRESS.name]
    return store.read(Event, sql("launcher_news"), {"kinds": kinds, "runs": list(runs), "since": since})
