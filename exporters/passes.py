"""Runs the collectors, each in its own thread and within a deadline, so that one that fails or hangs costs only itself."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import Final

from exporters.collector import Collector, Reading
from exporters.encode import Accepted, accept
from exporters.labels import clean
from pipeline.catalog.metrics import AGENT
from pipeline.clock import monotonic

HUNG: Final = "no answer within its deadline"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one collector's pass gave. `error` is "" where it gave readings; `rejected` counts values; `seconds` is how
    long it took, or has taken so far."""

    name: str
    readings: Sequence[Accepted]
    rejected: int
    seconds: float
    error: str


class Runner:
    """One collector and its thread. While a pass hangs no other one is begun."""

    def __init__(self, name: str, collector: Collector, clock: Callable[[], float] = monotonic) -> None:
        self.name = name
        self._collector = collector
        self._clock = clock
        self._begun_at: float | None = None
        self._outcome: Outcome | None = None
        self._orders: SimpleQueue[datetime] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"collector-{name}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Is a pass under way?"""
        return self._begun_at is not None

    def begin(self, now: datetime) -> None:
        """Begins a pass, unless the last one still hangs."""
        if not self.busy:
            self._outcome = None
            self._begun_at = self._clock()
            self._orders.put(now)

    def outcome(self) -> Outcome:
        """What the pass gave; of one that has not ended, that it hangs."""
        begun = self._begun_at
        if begun is None and self._outcome is not None:
            return self._outcome
        return Outcome(self.name, (), 0, self._clock() - begun if begun is not None else 0.0, HUNG)

    def _work(self) -> None:
        while True:
            now = self._orders.get()
            began = self._clock()
            readings: list[Accepted] = []
            rejected = 0
            try:
                readings, rejected = accept(self._collector.collect(now))
                error = "" if not readings or any(reading.values for reading in readings) else "no value could be read"
            except Exception as e:  # noqa: BLE001 - a collector's defect must not take the other collectors with it
                error = clean(f"{type(e).__name__}: {e}")
            self._outcome = Outcome(self.name, readings, rejected, self._clock() - began, error)
            self._begun_at = None


class Passes:
    """Passes over all `runners`, each at most `deadline` seconds long. Not for several threads."""

    def __init__(self, runners: Sequence[Runner], deadline: float) -> None:
        self._runners = runners
        self._deadline = deadline
        self._begun_at: float | None = None

    def begin(self, now: datetime, clock: float) -> None:
        """Begins a pass of every collector that is free."""
        self._begun_at = clock
        for runner in self._runners:
            runner.begin(now)

    def end(self, clock: float) -> list[Outcome] | None:
        """The outcomes, once, as soon as all are there or the deadline is over; None before, and where no pass was begun."""
        if self._begun_at is None or (clock - self._begun_at < self._deadline and any(runner.busy for runner in self._runners)):
            return None
        self._begun_at = None
        return [runner.outcome() for runner in self._runners]


@dataclass(slots=True)
class _Record:
    rejected: int = 0
    last_success: float | None = None
    error: str = ""


class Judge:
    """Keeps how each collector has been doing since the start."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._records: dict[str, _Record] = {}

    def failed(self, outcome: Outcome, at: float) -> bool:
        """Takes note of an outcome at `at` (seconds since 1970); True where its collector has just begun to fail."""
        record = self._records.setdefault(outcome.name, _Record())
        before, record.error = record.error, outcome.error
        record.rejected += outcome.rejected
        if not outcome.error:
            record.last_success = at
        if outcome.error != before:
            _log.warning("collector %s: %s", outcome.name, outcome.error or "gives readings again")
        return bool(outcome.error) and not before

    def reading(self, outcome: Outcome) -> Reading:
        """The reading about the collector itself."""
        record = self._records.setdefault(outcome.name, _Record())
        return Reading(
            AGENT,
            {"node": self._node, "collector": outcome.name},
            {
                "agent.collect.ok": int(not outcome.error),
                "agent.collect.time": outcome.seconds,
                "agent.rejected": record.rejected,
                "agent.last_success": record.last_success,
            },
        )
