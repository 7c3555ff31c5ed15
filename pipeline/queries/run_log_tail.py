"""The last lines that a run printed."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line. `rank` is "" where the launcher could not tell whose it is."""

    at: datetime
    node: str
    attempt: str
    rank: str
    text: str


def run_log_tail(store: Store, run: str, lines: int) -> list[LogLine]:
    """The newest `lines` lines of `run`, oldest first, each cut at 2000 characters."""
    return [LogLine(**row) for row in store.query(sql("run_log_tail"), {"run": run, "lines": lines})]
