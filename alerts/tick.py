"""One tick of the leader: look, find, decide, act, tell. What opens a finding also opens its incident and issues its action.

Everything is rebuilt from rows at the first tick and after one that failed; every write is idempotent,
so that a kill at any line is followed by the same rows.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import groupby

from alerts.book import Book, read_book
from alerts.fold import attempts_of
from alerts.holds import Holds
from alerts.incidents.findings import Findings
from alerts.incidents.last_words import LastWords
from alerts.incidents.progress import Progress
from alerts.outbox import Outbox
from alerts.paging import Paging
from alerts.reader import Reader
from alerts.receivers.registry import Receiver
from alerts.recovery.actuators import attempts, gather, lost_runs
from alerts.recovery.recovery import Recovery
from alerts.requests import Requests
from alerts.snapshot import AttemptLook, Snapshot
from pipeline.clock import Clock, monotonic, utcnow
from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.requests_new import requests_new
from pipeline.settings import Settings
from pipeline.store import Store
from pipeline.topology import read as read_topology

ASKED = timedelta(hours=1)  # a request that is older was not carried out in time: asking again is safer than replaying it


class Tick:
    """The leader's work. Call it every `detect.tick` seconds from one thread. Raises SettingsError for a bad topology file."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        outbox: Outbox,
        receivers: Mapping[str, Receiver],
        term: int,
        *,
        clock: Clock = utcnow,
        stopwatch: Callable[[], float] = monotonic,
    ) -> None:
        self._settings, self._store, self._term = settings, store, term
        self._clock, self._stopwatch = clock, stopwatch
        self._topology = read_topology(settings.topology)
        self._paging = Paging(outbox, receivers, settings.console, self._topology)
        self._sound = False  # whether what is remembered agrees with the rows

    def __call__(self) -> None:
        """Look once. Raises StoreError or OutboxError; the next call then begins from the rows."""
        now, ticks = self._clock(), self._stopwatch()
        if not self._sound:
            self._begin(now)
        self._sound = False
        self._tick(now, ticks)
        self._sound = True

    def _begin(self, now: datetime) -> None:
        book = self._book = read_book(self._store, now)
        self._reader = Reader(self._store, self._settings)
        words = LastWords(self._store)
        self._findings = Findings(book, words, self._topology)
        self._progress = Progress(book, words, self._settings.detect.settle)
        self._recovery = Recovery(book, self._settings, self._term)
        self._requests = Requests(book, self._recovery, self._settings)
        self._findings.mend(now)
        self._recovery.take_over(now)

    def _tick(self, now: datetime, ticks: float) -> None:
        book = self._book
        book.forget(now)
        Holds(book).close(now)
        snapshot = self._reader.read(now, ticks, book.runs())
        now = self._clock()  # what is decided from here on is decided now, not when the reading began
        if snapshot.launchers:
            used, patience = self._used(snapshot), self._settings.recovery.gather
            book.write(*attempts.due(snapshot, used, now), *gather.first(snapshot, used, patience, now))
            book.write(*gather.adopt(snapshot, used, patience, now))
        self._recovery.follow_up(snapshot, now)
        self._recovery.bring_together(snapshot, now)
        self._progress.advance_all(snapshot, ticks)  # what has recovered is over before anything new is found
        self._findings.reconcile(snapshot, now)
        lost_runs.end(book, snapshot, now)
        self._progress.advance_all(snapshot, ticks)
        self._carry_out(book, snapshot, now)
        self._recovery.withdraw(now)
        for incident in book.unresolved():
            self._recovery.act(incident, snapshot, now)
        self._progress.advance_all(snapshot, ticks)
        self._paging.queue(book, snapshot, now)

    def _used(self, snapshot: Snapshot) -> dict[str, AttemptLook]:
        """The runs that launchers are there for which are not looked at now, but have had attempts: the last one of each."""
        there = (*attempts.asking(snapshot), *gather.minted(snapshot))
        new = sorted({one.run for one in there if snapshot.run(one.run) is None})
        rows = attempts_of_runs(self._store, new) if new else []
        return {run: attempts_of(group)[-1] for run, group in groupby(rows, key=lambda t: t.run)}

    def _carry_out(self, book: Book, snapshot: Snapshot, now: datetime) -> None:
        if self._reader.requests_changed:
            self._requests.carry_out(requests_new(self._store, now - ASKED), snapshot, now)
            self._reader.requests_changed = False
