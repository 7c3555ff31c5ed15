"""The evidence that was taken from the ranks of an attempt before it was stopped."""

from pipeline.catalog.events import CAPTURE
from pipeline.queries import sql
from pipeline.records import Event
from pipeline.store import Store


def captures(store: Store, run: str, attempt: str) -> list[Event]:
    """The capture events of `attempt` and of its inner restarts, by rank and time; `attrs["text"]` holds stacks."""
    return store.read(Event, sql("captures"), {"kind": CAPTURE.name, "run": run, "attempt": attempt})
