"""When an attempt's ranks were seen by their agent, and the stretches in which they were not."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Signs:
    """A rank was seen from `first_at` to `last_at`, but in none of `silences`."""

    rank: int
    first_at: datetime
    last_at: datetime
    silences: list[tuple[datetime, datetime]]


def attempt_signs(store: Store, run: str, attempt: str, gap: float) -> list[Signs]:
    """Silences are those longer than `gap` seconds. A process seen to be gone is no sign. Rows of `live` are kept for two days."""
    return [Signs(**row) for row in store.query(sql("attempt_signs"), {"run": run, "attempt": attempt, "gap": gap})]
