"""Runs the collectors, each in a thread, at its own pace and within a deadline: one that fails or hangs costs only itself."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Final
from zlib import crc32

from exporters.collector import Closes, Collector, Foreign, Keeps, MayBeAbsent, Observation, Reading, Site, Sourced, Stirs, Table
from exporters.encode import Accepted, accept
from exporters.labels import clean, clean_event, told
from exporters.registry import Entry
from pipeline.clock import monotonic
from pipeline.records import Event
from pipeline.settings import Settings

HUNG: Final = "no answer within its deadline"
_log = logging.getLogger(__name__)
SOONEST: Final = 1.0  # seconds between the beginnings of two passes, however often a collector is stirred


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one collector's pass gave. `error` is "" where it gave readings; `rejected` counts values; `seconds` is how
    long it took, or has taken so far; `kept` is how far it had come, for `Site.kept` of the next agent; `absent` says why
    there is nothing to observe here, `source` where it looked, where there are several such places."""

    name: str
    readings: Sequence[Accepted]
    rejected: int
    seconds: float
    error: str
    events: Sequence[Event] = ()
    kept: Mapping[str, int | None] = field(default_factory=dict)
    foreign: Sequence[Foreign] = ()
    absent: str = ""
    source: str = ""


class Runner:
    """One collector and its thread, begun every `every` seconds. While a pass hangs no other one is begun.

    `make` makes the collector, in that thread; one that cannot be made is tried again at the next pass.
    """

    def __init__(
        self, name: str, make: Callable[[], Collector], every: float, deadline: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self.name, self.every, self.deadline = name, every, deadline
        self._make = make
        self._collector: Collector | None = None
        self._clock = clock
        self._begun_at: float | None = None
        self._outcome: Outcome | None = None
        self._orders: SimpleQueue[datetime | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"collector-{name}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Is a pass under way?"""
        return self._begun_at is not None

    @property
    def stirred(self) -> bool:
        """Does the collector want to look before its time?"""
        try:
            collector: object = self._collector
            return isinstance(collector, Stirs) and not self.busy and collector.stirred()
        except Exception:  # noqa: BLE001 - whose defect it is, it looks at its own pace
            return False

    def begin(self, now: datetime) -> None:
        """Begins a pass, unless the last one still hangs."""
        if not self.busy:
            self._begun_at = self._clock()
            self._orders.put(now)

    def take(self) -> Outcome | None:
        """What a pass that has ended gave, once."""
        if self.busy or self._outcome is None:
            return None
        outcome, self._outcome = self._outcome, None
        return outcome

    def hung(self) -> Outcome:
        """That the pass under way has not ended."""
        begun = self._begun_at
        return Outcome(self.name, (), 0, self._clock() - begun if begun is not None else 0.0, HUNG)

    def close(self) -> None:
        """Has the collector give back what it holds, after the pass under way; `join` waits for it."""
        self._orders.put(None)

    def join(self, timeout: float) -> None:
        """Waits for at most `timeout` seconds until that is done; not at all where a pass hangs."""
        if not self.busy:
            self._thread.join(timeout)

    def _work(self) -> None:
        while (now := self._orders.get()) is not None:
            began = self._clock()
            outcome = self._pass(now)
            self._outcome = replace(outcome, seconds=self._clock() - began)
            self._begun_at = None
        try:
            collector: object = self._collector
            if isinstance(collector, Closes):
                collector.close()
        except Exception as e:  # noqa: BLE001 - a collector's defect must not take the other collectors with it
            _log.warning("collector %s cannot be closed: %s", self.name, told(e))

    def _pass(self, now: datetime) -> Outcome:
        """What the collector gives; of one that fails, what it gave before."""
        events: list[Event] = []
        foreign: list[Foreign] = []
        readings: list[Accepted] = []
        kept: Mapping[str, int | None] = {}
        rejected, absent, source = 0, "", ""
        try:
            if self._collector is None:
                self._collector = self._make()
            try:
                readings, rejected = accept(_parted(self._collector.collect(now), events, foreign))
            finally:
                kept = self._collector.kept() if isinstance(self._collector, Keeps) else {}
            error = "" if not readings or any(reading.numbers for reading in readings) else "no value could be read"
            if not readings and isinstance(self._collector, MayBeAbsent):
                absent = clean(self._collector.absent())
            source = clean(self._collector.source()) if isinstance(self._collector, Sourced) else ""
        except Exception as e:  # noqa: BLE001 - a collector's defect must not take the other collectors with it
            error = told(e)
        return Outcome(self.name, readings, rejected, 0.0, error, events, kept, foreign, absent, source)


def _parted(observed: Iterable[Observation], events: list[Event], foreign: list[Foreign]) -> Iterator[Reading | Table]:
    """The readings; the events among them are put into `events`, what the catalogue does not know into `foreign`."""
    for one in observed:
        if isinstance(one, Event):
            events.append(clean_event(one))
        elif isinstance(one, Foreign):
            foreign.append(one)
        else:
            yield one


@dataclass(slots=True)
class _Turn:
    """Where a runner stands: when its next pass is due, when the last was begun, when one was that nobody has heard of, and whether that
    one was called hung."""

    due: float | None = None
    last: float | None = None
    begun: float | None = None
    hung: bool = False


class Schedule:
    """Passes of all `runners`. Not for several threads.

    The first pass of each is at once. After it each keeps its pace, from a moment of its own that differs by `seed`, so that neither the
    collectors of one node nor the agents of many all work at the same moment.
    """

    def __init__(self, runners: Sequence[Runner], seed: str) -> None:
        self._runners = runners
        self._turns = {runner.name: _Turn() for runner in runners}
        self._seed = seed

    def turn(self, now: datetime, clock: float) -> list[Outcome]:
        """What has ended since the last turn, or hung for its deadline; begins what is due. `clock` is monotonic seconds."""
        outcomes = []
        for runner in self._runners:
            turn = self._turns[runner.name]
            if (outcome := self._outcome(runner, turn, clock)) is not None:
                outcomes.append(outcome)
            if turn.begun is not None:
                continue
            due = turn.due is None or clock >= turn.due
            if due:
                turn.due = self._next(runner, turn.due, clock)
            if due or (turn.last is not None and clock - turn.last >= SOONEST and runner.stirred):
                turn.begun = turn.last = clock
                runner.begin(now)
        return outcomes

    @property
    def waiting(self) -> bool:
        """Is a pass under way that nobody has heard of?"""
        return any(turn.begun is not None for turn in self._turns.values())

    def _outcome(self, runner: Runner, turn: _Turn, clock: float) -> Outcome | None:
        if (outcome := runner.take()) is not None:
            late, turn.hung, turn.begun = turn.hung, False, None
            # What a pass read that was called hung is too old to be shown; what it says has happened has happened.
            return replace(outcome, readings=(), foreign=(), error=outcome.error or HUNG) if late else outcome
        if turn.begun is not None and clock - turn.begun >= runner.deadline:
            turn.begun, turn.hung = None, True
            return runner.hung()
        return None

    def _next(self, runner: Runner, due: float | None, clock: float) -> float:
        if due is None:
            return clock + runner.every * (0.5 + crc32(f"{self._seed}/{runner.name}".encode(errors="replace")) / 2**33)
        return due + runner.every if due + runner.every > clock else clock + runner.every  # what was missed is not made up for


def close(runners: Sequence[Runner], within: float) -> None:
    """Has the collectors give back what they hold, and waits for it for at most `within` seconds."""
    for runner in runners:
        runner.close()
    end = monotonic() + within
    for runner in runners:
        runner.join(max(0.0, end - monotonic()))


def runners_of(
    settings: Settings, site: Site, entries: Sequence[Entry], every: float | None = None, patience: Mapping[str, float] | None = None
) -> list[Runner]:
    """A runner for each collector; `every` in place of its own pace, where it is to work once; `patience` are deadlines by name that
    differ from the agent's."""
    paces = [(entry, every or entry.every or min(settings.agent.interval, entry.within)) for entry in entries]
    deadlines = patience or {}
    return [Runner(entry.name, partial(entry.make, site), pace, deadlines.get(entry.name, settings.agent.timeout)) for entry, pace in paces]
