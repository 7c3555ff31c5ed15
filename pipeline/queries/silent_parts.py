"""How long Surefoot's own parts were silent in a period."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.queries.silent_agents import LEAD, Silence
from pipeline.store import Store


def silent_parts(store: Store, since: datetime, until: datetime, *, limit: float) -> list[Silence]:
    """`jobs` and `ingest`, as `silent_agents`. Their beats are kept for two days: before that nothing is known of them."""
    given = {"since": since, "until": until, "limit": limit, "lead": LEAD}
    return [Silence(**row) for row in store.query(sql("silent_parts"), given)]
