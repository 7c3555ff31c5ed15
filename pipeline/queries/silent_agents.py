"""How long the agents of nodes were silent in a period."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store

LEAD = 86_400  # seconds before a period in which a part must have been heard to be missed at its beginning


@dataclass(frozen=True, slots=True)
class Silence:
    """Who was heard last when, and of the period before that the seconds in `gaps` without a word."""

    name: str
    last_heard: datetime
    silent: float
    gaps: int


def silent_agents(store: Store, since: datetime, until: datetime, *, limit: float) -> list[Silence]:
    """Each node that was heard in [since, until) or in the day before it; only silences longer than `limit` seconds count.

    The silence after `last_heard` is not in it.
    """
    given = {"since": since, "until": until, "limit": limit, "lead": LEAD}
    return [Silence(**row) for row in store.query(sql("silent_agents"), given)]
