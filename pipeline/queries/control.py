"""What waits for launchers: actions under way, attempts to start, and whether their run is over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pipeline.queries import sql


class Reader(Protocol):
    """The part of the store that is needed here."""

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query."""
        ...


@dataclass(frozen=True, slots=True)
class IssuedAction:
    """An action under way, which its launcher may not have taken up yet. `grace` is seconds."""

    id: str
    kind: str
    attempt: str
    new_attempt: str
    launch: int
    grace: float
    deadline: datetime | None
    term: int
    reason: str


@dataclass(frozen=True, slots=True)
class IssuedAttempt:
    """An attempt that waits for its launcher; of several for all of `nodes`, in the order of their node ranks, since `issued_at`."""

    id: str
    launch: int
    issued_at: datetime
    nodes: tuple[str, ...] = ()
    master: str = ""
    resume: str = ""


@dataclass(frozen=True, slots=True)
class Issued:
    """All that waits for one run, oldest first; `term` is the highest that the leader ever used."""

    term: int = 0
    actions: tuple[IssuedAction, ...] = ()
    attempts: tuple[IssuedAttempt, ...] = ()
    end: str = ""  # why the run is over; "" while it goes on


def issued(store: Reader, runs: Iterable[str]) -> dict[str, Issued]:
    """What waits for each of `runs`."""
    wanted = sorted(set(runs))
    rows = store.query(sql("control"), {"runs": wanted})
    term = max(row["term"] for row in rows if row["source"] == "term")
    return {run: _issued(term, [row for row in rows if row["run"] == run]) for run in wanted}


def _issued(term: int, rows: Sequence[Mapping[str, Any]]) -> Issued:
    actions = tuple(
        IssuedAction(r["id"], r["kind"], r["attempt"], r["new_attempt"], r["launch"], r["grace"], r["deadline"], r["term"], r["reason"])
        for r in rows
        if r["source"] == "action"
    )
    attempts = tuple(
        IssuedAttempt(r["id"], r["launch"], r["since"], tuple(filter(None, r["nodes"].split(","))), r["master"], r["resume"])
        for r in rows
        if r["source"] == "attempt"
    )
    end = next((r["reason"] or "it ended" for r in rows if r["source"] == "end"), "")
    return Issued(term, actions, attempts, end)
