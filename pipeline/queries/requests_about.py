"""What was asked for about some actions, incidents or runs."""

from collections.abc import Sequence

from pipeline.queries import sql
from pipeline.records import Request
from pipeline.store import Store


def requests_about(store: Store, targets: Sequence[str]) -> list[Request]:
    """The requests whose target is one of `targets`, oldest first; each intent once."""
    return store.read(Request, sql("requests_about"), {"targets": list(targets)})
