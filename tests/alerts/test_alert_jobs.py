"""The leader's jobs under a real scheduler, and what is told when the store is away."""

import time
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler

from alerts.jobs import STUCK_SECONDS, Heart, register
from alerts.outbox import Result
from alerts.paging import record_result
from pipeline.errors import StoreUnavailable
from pipeline.patience import Patient
from pipeline.records import Beat, NotificationTransition
from pipeline.settings import Settings
from pipeline.store import Store

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


def test_the_registered_jobs_issue_an_attempt_and_give_signs_of_life(store: Store, store_settings: Settings) -> None:
    scheduler = BackgroundScheduler(timezone=UTC)
    register(scheduler, store_settings, store, 7)
    scheduler.start()
    try:
        beat = Beat(component="launcher", at=datetime.now(UTC), node="a", run="r", state="starting", launch=1)
        store.insert([beat], token="b")
        deadline, beats = time.monotonic() + 60, "SELECT DISTINCT state, launch FROM beats WHERE component = 'jobs'"
        while time.monotonic() < deadline and not ((attempts := store.query("SELECT attempt FROM attempts")) and store.query(beats)):
            time.sleep(0.1)
    finally:
        scheduler.shutdown()
    assert attempts == [{"attempt": "r-1"}]
    assert store.query(beats) == [{"state": "leading", "launch": 7}]
    for job in (scheduler.get_job("alerts.tick"), scheduler.get_job("alerts.beat")):
        assert job is None, "the scheduler is gone"


class Flaky:
    """Work that fails as the list says."""

    def __init__(self, outcomes: list[Exception | None]) -> None:
        self.outcomes = outcomes

    def __call__(self) -> None:
        outcome = self.outcomes.pop(0)
        if outcome:
            raise outcome


def test_a_leader_whose_ticks_fail_gives_no_sign_of_life(store: Store) -> None:
    seconds = 0.0
    away, defect = StoreUnavailable("nobody answers"), ValueError("a defect")
    work: Any = Flaky([None, away, defect, None])
    tick = Patient("tick", work, stopwatch=lambda: seconds)
    heart = Heart("a", store, 1, lambda: tick.idle < STUCK_SECONDS)
    beats = []
    for seconds in (1.0, 8.0, 12.0, 13.0):  # noqa: B007 - the stopwatch reads it
        tick()
        heart()
        beats.append(len(store.query("SELECT at FROM beats")))
    assert beats == [1, 2, 2, 3]


def test_the_outcome_of_a_page_is_written_once_however_often_it_is_told(store: Store) -> None:
    result = Result(
        notification="i:trigger:pager",
        incident="i",
        receiver="pager",
        event="trigger",
        dedup_key="i",
        state="sent",
        reason="202",
        tries=1,
        at=NOW,
    )
    record_result(store, result)
    record_result(store, result)
    (row,) = store.read(NotificationTransition, "SELECT * FROM notifications")
    assert (row.old_state, row.new_state, row.reason, row.tries, row.at) == ("queued", "sent", "202", 1, NOW)
