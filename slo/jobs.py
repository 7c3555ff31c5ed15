"""Slo's periodic jobs, under the scheduler of `surefoot jobs`."""

from apscheduler.schedulers.base import BaseScheduler

from pipeline.patience import Patient
from pipeline.settings import Settings
from pipeline.store import Store
from slo.figures_job import FiguresJob
from slo.ledger_job import LedgerJob

LOOK = 2.0  # seconds between looks for something to do


def register(scheduler: BaseScheduler, settings: Settings, store: Store) -> None:
    """Add slo's jobs to `scheduler`. A late one is never dropped, two of one never run together: each catches up from its watermark."""
    for name, tick in (("slo.ledger", LedgerJob(store).tick), ("slo.figures", FiguresJob(store).tick)):
        scheduler.add_job(
            Patient(name, tick),
            "interval",
            seconds=LOOK,
            id=name,
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=1,
        )
