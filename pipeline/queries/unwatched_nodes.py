"""The nodes of a run that nothing but its launcher speaks for: that one of them is lost is not noticed."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


def unwatched_nodes(store: Store, run: str, since: datetime, until: datetime, agents_since: datetime) -> list[str]:
    """By name, those whose launcher was heard after `since`, up to `until`, and whose agent was not after `agents_since`."""
    given = {"run": run, "since": since, "until": until, "agents_since": agents_since}
    return [str(row["node"]) for row in store.query(sql("unwatched_nodes"), given)]
