"""`surefoot jobs`: one leader, one scheduler, the jobs of alerts and slo."""

import signal
import threading
from datetime import UTC

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from alerts import jobs as alert_jobs
from alerts.leader import lead
from pipeline import topology
from pipeline.errors import StoreUnavailable
from pipeline.settings import Settings
from pipeline.store import Store
from slo import jobs as slo_jobs

RETRY_SECONDS = 0.3

log = structlog.get_logger()


def serve(settings: Settings) -> None:
    """Lead until SIGTERM or SIGINT. Waits for the store, and for another leader on this machine to end.

    Raises SettingsError for a bad topology file, before it waits for anything.
    """
    topology.read(settings.topology)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with lead(settings.state_dir, stopping) as term:
        store = None if term is None else _connect(settings, stopping)
        if term is None or store is None:
            return
        scheduler = BackgroundScheduler(timezone=UTC)
        alert_jobs.register(scheduler, settings, store, term)
        slo_jobs.register(scheduler, settings, store)
        scheduler.start()
        log.info("leading", term=term)
        stopping.wait()
        scheduler.shutdown()


def _connect(settings: Settings, stopping: threading.Event) -> Store | None:
    """The store, once it answers; None where we are to stop first."""
    waiting = False
    while not stopping.is_set():
        try:
            return Store.connect(settings)
        except StoreUnavailable as e:
            if not waiting:
                log.warning("waiting for the store", reason=str(e))
            waiting = True
            stopping.wait(RETRY_SECONDS)
    return None
