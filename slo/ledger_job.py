"""The job that keeps the table `ledger` up to date: each pass writes a new generation of the pieces that changed.

What it knows between passes can be read again: signatures from `watermarks`, generations from the ledger
itself. Killed at any point, it computes at most one piece once more.
"""

from datetime import datetime, timedelta

import structlog

from pipeline.catalog.layers import Category
from pipeline.clock import Clock, from_micros, monotonic, utcnow
from pipeline.errors import StoreError
from pipeline.queries.ledger_marks import ledger_marks
from pipeline.queries.ledger_news import ledger_news
from pipeline.queries.ledger_pending import ledger_pending
from pipeline.queries.ledger_written import ledger_written
from pipeline.queries.run_first_steps import run_first_steps
from pipeline.queries.watermark_values import watermark_values
from pipeline.records import LedgerEntry
from pipeline.store import Store
from slo.history import Frame
from slo.ledger import PART, Piece, pieces
from slo.ledger_now import compute_piece, read_frame
from slo.plan import Signatures, signatures, stale

log = structlog.get_logger("surefoot.ledger")

PERIOD = 10.0  # seconds between passes over runs that go on
SETTLED = timedelta(seconds=10)  # after a change of state: while a run is being restarted, the processors are its own
DUTY = 20  # a pass that took t seconds is followed by DUTY * t seconds of rest
LATE = timedelta(minutes=10)  # how long after a run's end records may still come in
_PARTS = "ledger_part:"
_CLOSED = "ledger_closed:"
_GONE = "gone"


class LedgerJob:
    """Call `tick` every second or two; it decides itself when there is something to do. One at a time."""

    def __init__(self, store: Store, clock: Clock = utcnow) -> None:
        self._store, self._clock = store, clock
        self._known: dict[str, Signatures] = {}
        self._generations: dict[str, dict[tuple[str, int], int]] = {}
        self._news: datetime | None = None
        self._next = 0.0

    def tick(self) -> None:
        """A pass where one is due: every ten seconds, and soon after a run, an attempt or an incident changed its state.

        Raises StoreError; the next tick tries again, after a while where trying at once would be of no use.
        """
        news = ledger_news(self._store)
        settled = news != self._news and (news is None or self._clock() - news >= SETTLED)
        if not settled and monotonic() < self._next:
            return
        began = monotonic()
        try:
            self.run_pass()
        except StoreError as e:
            if e.permanent:
                self._next = monotonic() + PERIOD
            raise
        self._news = news
        self._next = monotonic() + max(PERIOD, DUTY * (monotonic() - began))

    def run_pass(self) -> int:
        """Bring the ledger of every run that is not closed up to now; gives the number of pieces written.

        A run whose ledger cannot be computed is logged, and left for the next pass: it must not keep the others waiting.
        Raises StoreUnavailable where the store is away.
        """
        written = 0
        for run in ledger_pending(self._store, _CLOSED):
            try:
                written += self._update(run)
            except StoreError as e:
                if not e.permanent:
                    raise
                log.error("ledger_of_run_fails", run=run, error=str(e))
        return written

    def _update(self, run: str) -> int:
        now = self._clock()
        frame = read_frame(self._store, run, now)
        if frame is None:
            return 0
        known = self._recall(run)
        plan = {(p.attempt, p.part): p for p in pieces(frame)}
        marks = ledger_marks(self._store, run, from_micros(frame.start), PART / 1e6)
        fresh = signatures(frame, list(plan.values()), marks, run_first_steps(self._store, run, now))
        changed = sorted(stale(fresh, {key: s for key, s in known.items() if key in fresh or s != _GONE}))
        for key in changed:
            self._write(frame, key, plan.get(key), fresh.get(key, _GONE))
        if frame.ended and not changed and now > from_micros(frame.end) + LATE:
            self._mark(f"{_CLOSED}{run}", "closed", f"{_CLOSED}{run}:{frame.end}")
            del self._known[run], self._generations[run]
        return len(changed)

    def _recall(self, run: str) -> Signatures:
        if run not in self._known:
            prefix = f"{_PARTS}{run}:"
            self._generations[run] = {(w.attempt, w.part): w.generation for w in ledger_written(self._store, run)}
            self._known[run] = {}
            for job, signature in watermark_values(self._store, prefix).items():
                attempt, _, part = job.removeprefix(prefix).rpartition("/")
                if part.isdecimal():
                    self._known[run][attempt, int(part)] = signature
        return self._known[run]

    def _write(self, frame: Frame, key: tuple[str, int], piece: Piece | None, signature: str) -> None:
        attempt, part = key
        generation = self._generations[frame.run].get(key, 0) + 1
        name = f"{frame.run}:{attempt}/{part}"
        entries = compute_piece(self._store, frame, piece, generation) if piece else [_empty(frame, attempt, part, generation)]
        self._store.insert(entries, token=f"ledger:{name}:{generation}:{signature}")
        self._generations[frame.run][key] = generation
        self._mark(f"{_PARTS}{name}", signature, f"{_PARTS}{name}:{generation}")
        self._known[frame.run][key] = signature

    def _mark(self, job: str, value: str, token: str) -> None:
        self._store.insert_rows("watermarks", [{"job": job, "at": self._clock(), "value": value}], token=token)


def _empty(frame: Frame, attempt: str, part: int, generation: int) -> LedgerEntry:
    """A generation without time: the segment that was written before is not there any more."""
    at = from_micros(frame.end)
    return LedgerEntry(
        run=frame.run, attempt=attempt, part=part, generation=generation, rank=0, started_at=at, ended_at=at, category=Category.IDLE.value
    )
