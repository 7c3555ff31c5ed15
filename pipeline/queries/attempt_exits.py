"""How the ranks of an attempt ended."""

from pipeline.catalog.events import RANK_EXITED
from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def attempt_exits(store: Store, run: str, attempt: str) -> list[Event]:
    """The last exit event of each rank of `attempt` and of its inner restarts; `code` is "" where the status could not be learnt."""
    return store.read(Event, sql("attempt_exits"), {"kind": RANK_EXITED.name, "run": run, "attempt": attempt})
