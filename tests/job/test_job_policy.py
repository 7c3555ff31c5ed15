"""The local policy: at most so many restarts an hour, one after a start-up failure."""

from exporters.job.policy import HOUR, Failure, decide


def stepped(at: float) -> Failure:
    return Failure(at, at_start=False)


def at_start(at: float) -> Failure:
    return Failure(at, at_start=True)


def test_an_attempt_that_made_steps_is_restarted() -> None:
    verdict = decide([stepped(10.0)], [], 10.0, 3)
    assert verdict.restart
    assert verdict.reason == "it was under way; 0 of 3 restarts used within an hour"


def test_the_limit_counts_the_restarts_of_the_last_hour_only() -> None:
    now = 10_000.0
    restarts = [now - HOUR - 1, now - HOUR, now - HOUR + 1, now - 1]
    assert decide([stepped(now)], restarts, now, 3).restart
    refused = decide([stepped(now)], restarts, now, 2)
    assert (refused.restart, refused.reason) == (False, "2 restarts within an hour, the limit is 2")


def test_a_limit_of_zero_restarts_nothing() -> None:
    assert not decide([stepped(1.0)], [], 1.0, 0).restart


def test_a_start_up_failure_is_restarted_once() -> None:
    assert decide([at_start(1.0)], [], 1.0, 3).restart
    refused = decide([at_start(1.0), at_start(2.0)], [1.0], 2.0, 3)
    assert (refused.restart, refused.reason) == (False, "2 attempts in a row ended at their start")


def test_a_start_up_failure_after_steps_is_the_first_one_again() -> None:
    assert decide([at_start(1.0), stepped(50.0), at_start(60.0)], [1.0, 50.0], 60.0, 3).restart
