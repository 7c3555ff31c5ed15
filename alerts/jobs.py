"""The leader's jobs under the scheduler: the tick, and the sign of life of the part that decides."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from apscheduler.schedulers.base import BaseScheduler

from alerts.delivery import start
from alerts.outbox import Outbox
from alerts.paging import record_result
from alerts.receivers.registry import receivers
from alerts.tick import Tick
from pipeline.clock import utcnow
from pipeline.patience import Patient
from pipeline.records import Beat
from pipeline.settings import Settings
from pipeline.store import Store

BEAT_SECONDS = 2.0
STUCK_SECONDS = 10.0  # without a tick that did its work: then the leader must not look alive


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
