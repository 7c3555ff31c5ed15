"""The leader's jobs under the scheduler: the tick, and the sign of life of the part that decides."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import structlog
from apscheduler.schedulers.base import BaseScheduler

from alerts.delivery import start
from alerts.outbox import Outbox
from alerts.paging import record_result
from alerts.receivers.registry import receivers
from alerts.tick import Tick
from pipeline.clock import monotonic, utcnow
from pipeline.errors import SurefootError
from pipeline.records import Beat
from pipeline.settings import Settings
from pipeline.store import Store

BEAT_SECONDS = 2.0
STUCK_SECONDS = 10.0  # without a tick that did its work: then the leader must not look alive

log = structlog.get_logger("surefoot.alerts")


def register(scheduler: BaseScheduler, settings: Settings, store: Store, term: int) -> None:
    """Add the tick and the beat to `scheduler`, and start delivering pages in the background."""
    outbox = Outbox(settings.state_dir / "outbox.sqlite")
    told = receivers(settings.receivers)
    start(outbox, told, partial(record_result, store))
    once = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1, "next_run_time": datetime.now(UTC)}
    tick = Patient("tick", Tick(settings, store, outbox, told, term))
    scheduler.add_job(tick, "interval", seconds=settings.detect.tick, id="alerts.tick", **once)
    beat = Patient("beat", Heart(settings.node, store, term, lambda: tick.idle < STUCK_SECONDS + settings.detect.tick))
    scheduler.add_job(beat, "interval", seconds=BEAT_SECONDS, id="alerts.beat", **once)


class Heart:
    """Writes the leader's sign of life while it is `able`: a leader that finds nothing because it fails is as good as none."""

    def __init__(self, node: str, store: Store, term: int, able: Callable[[], bool]) -> None:
        self._node, self._store, self._term, self._able = node, store, term, able
        self._numbers = itertools.count()

    def __call__(self) -> None:
        """One beat. Raises StoreError."""
        if not self._able():
            return
        beat = Beat(component="jobs", at=utcnow(), node=self._node, state="leading", launch=self._term)
        self._store.insert([beat], token=f"beat:jobs:{self._term}:{next(self._numbers)}")


class Patient:
    """The process's loop over one job: it is told once when it begins to fail, and once when it works again; each call tries anew."""

    def __init__(self, name: str, work: Tick | Heart, stopwatch: Callable[[], float] = monotonic) -> None:
        self._name, self._work, self._stopwatch = name, work, stopwatch
        self._failing = ""
        self._worked_at = stopwatch()

    @property
    def idle(self) -> float:
        """Seconds since it last did its work, or was made."""
        return self._stopwatch() - self._worked_at

    def __call__(self) -> None:
        """Work once."""
        try:
            self._work()
        except SurefootError as e:
            if self._begins(e):
                log.warning("job_fails", job=self._name, kind=type(e).__name__, reason=str(e))
            return
        except Exception as e:  # the catch-all of this process's one loop: a defect in one tick must not end the leader
            if self._begins(e):
                log.exception("job_fails", job=self._name, kind=type(e).__name__, reason=str(e))
            return
        self._worked_at = self._stopwatch()
        if self._failing:
            log.info("job_works_again", job=self._name)
        self._failing = ""

    def _begins(self, error: Exception) -> bool:
        """Whether it did not fail in this way the last time."""
        before, self._failing = self._failing, type(error).__name__
        return before != self._failing
