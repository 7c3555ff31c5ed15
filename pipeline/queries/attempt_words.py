"""Lines that an attempt printed on a node and that hold certain words."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def attempt_words(store: Store, attempt: str, node: str, words: Sequence[str], since: datetime, until: datetime) -> list[str]:
    """The newest ten such lines from `since` to `until`, each cut at 500 characters."""
    asked = {"attempt": attempt, "node": node, "words": list(words), "since": since, "until": until}
    return [row["text"] for row in store.query(sql("attempt_words"), asked)]
