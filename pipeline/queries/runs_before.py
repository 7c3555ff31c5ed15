"""The runs that were started before another one."""

from dataclasses import dataclass

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run and its command."""

    run: str
    command: str


def runs_before(store: Store, run: str, limit: int) -> list[EarlierRun]:
    """`run` itself, then the newest runs before it, with their commands; at most `limit`, and none where there is no such run."""
    return [EarlierRun(**row) for row in store.query(sql("runs_before"), {"run": run, "limit": limit})]
