"""The loop over a periodic job: a failure is told once, not at every try, and so is that it is over."""

from collections.abc import Callable

import structlog

from pipeline.clock import monotonic
from pipeline.errors import SurefootError

log = structlog.get_logger("surefoot.jobs")


class Patient:
    """The process's loop over one job: it is told once when it begins to fail, and once when it works again; each call tries anew."""

    def __init__(self, name: str, work: Callable[[], object], stopwatch: Callable[[], float] = monotonic) -> None:
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
