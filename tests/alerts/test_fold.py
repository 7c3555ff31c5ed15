"""Transitions folded into where a run and its attempts stand."""

from datetime import UTC, datetime

from alerts.fold import attempts_of
from pipeline.records import AttemptTransition


def test_a_state_that_nobody_here_knows_does_not_stop_the_leader() -> None:
    def row(attempt: str, state: str, second: int) -> AttemptTransition:
        at = datetime(2026, 11, 30, 12, 0, second, tzinfo=UTC)
        return AttemptTransition(old_state="", new_state=state, reason="", actor="l", at=at, run="r", attempt=attempt, launch=1)

    (known,) = attempts_of([row("r-1", "running", 1), row("r-1", "draining", 2), row("r-2", "draining", 3)])
    assert (known.attempt, known.state) == ("r-1", "running")
