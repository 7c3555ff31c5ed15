"""The job that keeps `slo_results` up to date: goodput and time to repair of the last day and week, from rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pipeline.catalog.layers import Category
from pipeline.clock import Clock, monotonic, to_micros, utcnow
from pipeline.errors import StoreError
from pipeline.queries.last_resolved import last_resolved
from pipeline.queries.repairs import Repair, repairs
from pipeline.queries.spending_over_time import Slice, spending_over_time
from pipeline.records import GOODPUT, MTTR, SloResult
from pipeline.store import Store
from slo.figures import mttr, productive_share

PERIOD = 60.0  # seconds between passes
WINDOWS = (86_400, 7 * 86_400)  # seconds
_MINUTE = 60_000_000


class FiguresJob:
    """Call `tick` every second or two; it decides itself when there is something to do. One at a time."""

    def __init__(self, store: Store, clock: Clock = utcnow) -> None:
        self._store, self._clock = store, clock
        self._resolved: datetime | None = None
        self._next = 0.0

    def tick(self) -> None:
        """A pass where one is due: the first at once, then every minute, and when an incident was resolved.

        Raises StoreError; the next tick tries again, but what would fail again waits for a minute.
        """
        resolved = last_resolved(self._store)
        if resolved == self._resolved and monotonic() < self._next:
            return
        self._resolved, self._next = resolved, 0.0
        try:
            self.run_pass(resolved)
        except StoreError as e:
            if e.permanent:
                self._next = monotonic() + PERIOD
            raise
        self._next = monotonic() + PERIOD

    def run_pass(self, resolved: datetime | None) -> None:
        """Write each figure of each window, once a minute and once more for a new time of the last resolution, `resolved`.

        Raises StoreError.
        """
        now = self._clock()
        rows = repairs(self._store, now - timedelta(seconds=max(WINDOWS)))
        moment = f"{to_micros(now) // _MINUTE}:{to_micros(resolved) if resolved else 'never'}"
        for window in WINDOWS:
            slices = spending_over_time(self._store, now - timedelta(seconds=window), now, width=window)
            for result in (goodput_result(slices, rows, now, window), mttr_result(rows, now, window)):
                self._store.insert([result], token=f"slo:{result.figure}:{window}:{moment}")


def goodput_result(slices: Sequence[Slice], rows: Sequence[Repair], now: datetime, window: int) -> SloResult:
    """Goodput of the `window` seconds before `now`, of which `slices` are the ledger and `rows` the incidents."""
    sums = dict.fromkeys(Category, 0.0)
    for s in slices:
        sums[Category(s.category)] += s.gpu_seconds
    start = now - timedelta(seconds=window)
    return SloResult(
        figure=GOODPUT,
        window_seconds=window,
        at=now,
        started_at=start,
        ended_at=now,
        value=productive_share(sums),
        count=round(sum(sums.values())),
        open=len(mttr(rows, start, now).open),
    )


def mttr_result(rows: Sequence[Repair], now: datetime, window: int) -> SloResult:
    """Time to repair over the incidents that were resolved in the `window` seconds before `now`."""
    start = now - timedelta(seconds=window)
    found = mttr(rows, start, now)
    return SloResult(
        figure=MTTR,
        window_seconds=window,
        at=now,
        started_at=start,
        ended_at=now,
        value=found.resolve.mean if found.resolve else None,
        median=found.resolve.median if found.resolve else None,
        p90=found.resolve.p90 if found.resolve else None,
        catch_up=found.catch_up.mean if found.catch_up else None,
        count=found.resolve.count if found.resolve else 0,
        open=len(found.open),
    )
