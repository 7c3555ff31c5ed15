"""The phases outside any step that an attempt's ranks went through."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.events import PHASE
from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """`phase` of `rank` took `seconds` and ended at `ended_at`."""

    rank: int
    phase: str
    ended_at: datetime
    seconds: float


def attempt_phases(store: Store, run: str, attempt: str) -> list[PhaseTimes]:
    """By rank and time."""
    return [PhaseTimes(**row) for row in store.query(sql("attempt_phases"), {"run": run, "attempt": attempt, "kind": PHASE.name})]
