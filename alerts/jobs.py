"""The leader's jobs under the scheduler: the tick, and the sign of life of the part that decides."""

import itertools
from datetime import UTC, datetime
from functools import partial

import structlog
from apscheduler.schedulers.base import BaseScheduler

from alerts.delivery import start
from alerts.outbox import Outbox
from alerts.paging import record_result
from alerts.receivers.registry import receivers
from alerts.tick import Tick
from pipeline.clock import utcnow
from pipeline.errors import SurefootError
from pipeline.records import Beat
from pipeline.settings import Settings
from pipeline.store import Store

BEAT_SECONDS = 2.0

log = structlog.get_logger("surefoot.alerts")


def register(scheduler: BaseScheduler, settings: Settings, store: Store, term: int) -> None:
    """Add the tick and the beat to `scheduler`, and start delivering pages in the background."""
    outbox = Outbox(settings.state_dir / "outbox.sqlite")
    told = receivers(settings.receivers)
    start(outbox, told, partial(record_result, store))
    once = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1, "next_run_time": datetime.now(UTC)}
    tick = Patient("tick", Tick(settings, store, outbox, told, term))
    scheduler.add_job(tick, "interval", seconds=settings.detect.tick, id="alerts.tick", **once)
    beat = Patient("beat", Heart(settings.node, store, term))
    scheduler.add_job(beat, "interval", seconds=BEAT_SECONDS, id="alerts.beat", **once)


class Heart:
    """Writes the leader's sign of life."""

    def __init__(self, node: str, store: Store, term: int) -> None:
        self._node, self._store, self._term = node, store, term
        self._numbers = itertools.count()

    def __call__(self) -> None:
        """One beat. Raises StoreError."""
        beat = Beat(component="jobs", at=utcnow(), node=self._node, state="leading", launch=self._term)
        self._store.insert([beat], token=f"beat:jobs:{self._term}:{next(self._numbers)}")


class Patient:
    """A job that outlives the store's absence: it says so once when it begins to fail, and once when it works again."""

    def __init__(self, name: str, work: Tick | Heart) -> None:
        self._name, self._work = name, work
        self._failing = ""

    def __call__(self) -> None:
        """Work once."""
        try:
            self._work()
        except SurefootError as e:
            kind = type(e).__name__
            if kind != self._failing:
                log.warning("job_fails", job=self._name, kind=kind, reason=str(e))
            self._failing = kind
            return
        if self._failing:
            log.info("job_works_again", job=self._name)
        self._failing = ""
