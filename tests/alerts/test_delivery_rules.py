"""The rules of delivery, against values worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from alerts.delivery_rules import GiveUp, Retry, after_failure, is_due, orphaned, rate_wait

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(("tries", "seconds"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (19, 300)])
def test_waits_double_from_one_second_to_five_minutes(tries: int, seconds: float) -> None:
    assert after_failure(tries, "500", permanent=False, retry_after=None) == Retry(seconds, "500")


def test_a_receiver_that_asks_for_more_patience_gets_it() -> None:
    assert after_failure(1, "429", permanent=False, retry_after=30.0) == Retry(30.0, "429")


def test_a_receiver_that_asks_for_less_patience_does_not_speed_us_up() -> None:
    assert after_failure(5, "429", permanent=False, retry_after=0.0) == Retry(16.0, "429")


def test_an_absurd_retry_after_is_believed_to_ten_minutes_only() -> None:
    assert after_failure(1, "429", permanent=False, retry_after=86_400.0) == Retry(600.0, "429")


def test_a_permanent_error_is_never_tried_again() -> None:
    assert after_failure(1, "400 bad", permanent=True, retry_after=1.0) == GiveUp("400 bad")


def test_the_twentieth_failure_is_the_last_and_says_so() -> None:
    assert after_failure(20, "503", permanent=False, retry_after=None) == GiveUp("given up after 20 tries: 503")


def test_a_clock_set_back_an_hour_does_not_hold_a_page_for_an_hour() -> None:
    assert is_due(NOW + timedelta(hours=1), NOW)
    assert not is_due(NOW + timedelta(seconds=300), NOW)
    assert is_due(NOW, NOW)


def test_the_hundred_and_first_send_waits_until_the_first_is_a_minute_old() -> None:
    sent = [ago(50)] + [ago(10)] * 99
    assert rate_wait(sent, NOW) == 10.0
    assert rate_wait(sent[1:], NOW) == 0.0


def test_no_sliding_minute_ever_holds_more_than_the_limit() -> None:
    """Sends as fast as the rule allows for five minutes, then counts every window by brute force."""
    now, sent = NOW, [NOW]
    while now < NOW + timedelta(minutes=5):
        wait = rate_wait(sent, now)
        now += timedelta(seconds=wait or 0.01)
        if not wait:
            sent.append(now)
    worst = max(sum(1 for other in sent if at <= other < at + timedelta(seconds=60)) for at in sent[:: len(sent) // 50])
    assert worst == 100


@pytest.mark.parametrize("triggers", [[], ["sent"], ["failed", "sent"], ["failed", "queued"]])
def test_a_resolve_is_sent_where_its_trigger_may_have_arrived(triggers: list[str]) -> None:
    assert orphaned("resolve", triggers) is None


def test_a_resolve_whose_triggers_all_failed_is_left_out() -> None:
    assert orphaned("resolve", ["failed", "failed"]) == "left out: its trigger was never delivered"
    assert orphaned("trigger", ["failed"]) is None
