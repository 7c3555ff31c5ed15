"""What agents cannot read at present: their collectors that give no readings."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class FailingCollector:
    """A collector of the agent on `node`, which last gave readings at `ok_at` (None: never since the agent started)."""

    node: str
    collector: str
    ok_at: datetime | None


def collectors_failing(store: Store, since: datetime, until: datetime) -> list[FailingCollector]:
    """Those whose last pass after `since`, up to `until`, gave nothing."""
    rows = store.query(sql("collectors_failing"), {"since": since, "until": until})
    return [FailingCollector(r["node"], r["collector"], _time(r["ok_at"])) for r in rows]


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
