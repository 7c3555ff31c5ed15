"""The rules of delivery, pure: when to try again, how fast to send, and what may follow an undelivered trigger."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from alerts.receivers.page import TRIGGER

MAX_TRIES = 20  # with the waits below about an hour; then it counts as failed
FIRST_WAIT = 1.0  # seconds
LONGEST_WAIT = 300.0
LONGEST_PAUSE = 600.0  # what a receiver's Retry-After is believed to at most
RATE_WINDOW = 60.0
RATE_LIMIT = 100  # sends in any 60 s; PagerDuty takes about 120 a key in a sliding minute
SLACK = 1.0  # seconds by which a stored time may lie beyond its longest wait before the clock is suspected


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `seconds`."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Never try again."""

    reason: str


def after_failure(tries: int, error: str, *, permanent: bool, retry_after: float | None) -> Retry | GiveUp:
    """What follows the `tries`-th failed try: 1, 2, 4 … 300 s of waiting, or longer where the receiver said so."""
    if permanent:
        return GiveUp(error)
    if tries >= MAX_TRIES:
        return GiveUp(f"given up after {tries} tries: {error}")
    wait = min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT)
    if retry_after is not None:
        wait = max(wait, min(retry_after, LONGEST_PAUSE))
    return Retry(wait, error)


def is_due(next_at: datetime, now: datetime) -> bool:
    """True at its time, and where it lies further ahead than any wait: then the clock was set back meanwhile."""
    return next_at <= now or next_at > now + timedelta(seconds=LONGEST_PAUSE + SLACK)


def rate_wait(sent: Sequence[datetime], now: datetime) -> float:
    """Seconds to wait before one more send, given when the last ones were, oldest first.

    It counts over the sliding minute. A bucket of 100 that refills at 100 a minute would let
    almost 200 through in its first one, and PagerDuty answers 429 from about 120.
    """
    start = now - timedelta(seconds=RATE_WINDOW)
    recent = [at for at in sent if start < at <= now]
    if len(recent) < RATE_LIMIT:
        return 0.0
    return (recent[-RATE_LIMIT] - start).total_seconds()


def orphaned(event: str, triggers: Sequence[str]) -> str | None:
    """Why an acknowledge or resolve is not to be sent, or None where it is.

    `triggers` are the states of the triggers since the last resolve of the same key. Where none is
    known (a new outbox), it is sent: the receiver may well have an alert open.
    """
    if event == TRIGGER or not triggers or "failed" not in triggers or any(state != "failed" for state in triggers):
        return None
    return "left out: its trigger was never delivered"
