"""A periodic job that fails is told once, tried again each time, and told once when it works again."""

from typing import Any

import structlog

from pipeline.errors import StoreUnavailable
from pipeline.patience import Patient


class Flaky:
    """Work that fails as the list says."""

    def __init__(self, outcomes: list[Exception | None]) -> None:
        self.outcomes = outcomes

    def __call__(self) -> None:
        outcome = self.outcomes.pop(0)
        if outcome:
            raise outcome


def test_a_store_that_is_away_is_told_once_and_its_return_once() -> None:
    away = StoreUnavailable("nobody answers")
    work: Any = Flaky([None, away, away, away, None, None])
    job = Patient("tick", work)
    with structlog.testing.capture_logs() as logs:
        for _ in range(6):
            job()
    assert [entry["event"] for entry in logs] == ["job_fails", "job_works_again"]


def test_a_defect_in_a_tick_is_told_once_with_its_traceback_and_the_next_tick_tries_again() -> None:
    defect, away = ValueError("a defect"), StoreUnavailable("nobody answers")
    work: Any = Flaky([None, defect, defect, away, defect, None])
    job = Patient("tick", work)
    with structlog.testing.capture_logs() as logs:
        for _ in range(6):
            job()
    told = [(entry["event"], entry.get("kind"), bool(entry.get("exc_info"))) for entry in logs]
    assert told == [
        ("job_fails", "ValueError", True),
        ("job_fails", "StoreUnavailable", False),
        ("job_fails", "ValueError", True),
        ("job_works_again", None, False),
    ]
    assert not work.outcomes, "every call did its work"
