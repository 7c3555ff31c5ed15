"""The last word of each launcher: what runs where."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class LauncherNow:
    """The launcher of `run` on `node` as it was at `at`; `alive` of its ranks were."""

    node: str
    run: str
    at: datetime
    attempt: str
    state: str
    alive: int


def launchers_now(store: Store, since: datetime, until: datetime) -> list[LauncherNow]:
    """Each launcher that was heard after `since`, up to `until` (a clock that ran ahead is left out)."""
    rows = store.query(sql("launchers_now"), {"since": since, "until": until})
    return [LauncherNow(r["node"], r["run"], r["heard_at"], r["attempt"], r["state"], _alive(r["ranks"])) for r in rows]


def _alive(ranks: str) -> int:
    """Of "0:alive:4711,1:exit:-9" one."""
    return sum(1 for rank in ranks.split(",") if rank.split(":")[1:2] == ["alive"])
