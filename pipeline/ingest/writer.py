"""Carries what the spool holds into the store: events at once, a rank's present soon, all else in batches.

One thread. While the store is away it waits and tries again with the same tokens; what the store refuses
for good goes to the quarantine and never blocks the rest. A segment is removed once all of it is stored.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from pipeline.clock import monotonic
from pipeline.errors import InputError, QueryTimeout, SpoolFull, StoreError
from pipeline.ingest import batches
from pipeline.ingest.batches import INVENTORY, Batch, Kept
from pipeline.ingest.health import Health
from pipeline.ingest.pacing import Pace, Waiting, Work, due
from pipeline.ingest.quarantine import Quarantine
from pipeline.ingest.seen import Seen
from pipeline.ingest.spool import Chunk, Segment, Spool
from pipeline.otlp.decoded import Decoded, Row
from pipeline.records import Record

BACKOFF: Final = (0.1, 0.2, 0.4, 0.8, 1.5)  # seconds between tries; the last one is repeated
PATIENCE: Final = 120.0  # seconds
NOT_READY: Final = frozenset({60, 81, 164, 202, 242, 252, 497, 516})
"""ClickHouse's codes that say how the store stands, not what is wrong with a batch: no such table or database
(migrations run after the store serves), read-only, too many queries or parts, access. Repeated for ever."""
DOUBTFUL: Final = frozenset({16, 159, 209, 210, 241})
"""Codes that may be either: no such column, time-outs, memory. Repeated for PATIENCE, then the batch is refused."""
KNOWN: Final = 50_000  # devices and series that need not be written again
_log = structlog.get_logger(__name__)


class Sink(Protocol):
    """The part of the store that the writer needs."""

    def insert(self, records: Sequence[Record], *, token: str) -> None: ...
    def insert_rows(self, table: str, rows: Sequence[Row], *, token: str) -> None: ...


@dataclass(slots=True)
class _Current:
    """The segment being stored, and what of it is still to do."""

    segment: Segment[Kept]
    left: deque[Batch]
    ids: list[str]


class Writer:
    """Started by `start`, told of each entry by `wake`, ended by `stop`.

    `connect` gives the store or raises StoreError; `read_back` reads an entry from its bytes.
    """

    def __init__(
        self,
        spool: Spool[Kept],
        connect: Callable[[], Sink],
        read_back: Callable[[bytes], Kept],
        quarantine: Quarantine,
        seen: Seen,
        health: Health,
        pace: Pace,
    ) -> None:
        self._spool = spool
        self._connect = connect
        self._read_back = read_back
        self._quarantine = quarantine
        self._seen = seen
        self._health = health
        self._pace = pace
        self._condition = threading.Condition()
        self._waiting = Waiting()
        self._chunks: deque[Chunk[Kept]] = deque()  # marked, their hurried rows not stored yet
        self._current: _Current | None = None
        self._done: dict[str, set[str]] = {}  # segment -> tokens that are stored
        self._known: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._inserting: Batch | None = None
        self._failures = 0
        self._failing_since: float | None = None  # of the batch at hand, with an error that may go away
        self._retry_at = 0.0
        self._deadline: float | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Begins, with what an earlier process left."""
        self._thread.start()

    def wake(self, decoded: Decoded, size: int) -> None:
        """An entry of `size` bytes was added to the spool."""
        with self._condition:
            self._waiting.add(decoded.most_haste, decoded.count, size, monotonic())
            self._condition.notify()

    def stop(self, seconds: float) -> None:
        """Stores what it can within `seconds` and ends; the rest stays in the spool."""
        with self._condition:
            self._deadline = monotonic() + seconds
            self._condition.notify()
        self._thread.join(seconds + 1.0)

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._condition:
                work, wait = self._next(monotonic())
                if work is Work.WAIT:
                    self._condition.wait(wait)
                    continue
                if work is Work.END:
                    return
                self._waiting.begin(work, monotonic())
            try:
                self._do(work)
            except (StoreError, InputError) as e:
                self._failed(e)
            except (SpoolFull, OSError) as e:
                self._later(f"the spool's disk refuses: {e}")
            except Exception as e:  # noqa: BLE001 - the one catch-all of this thread: a defect must not end ingest
                _log.exception("writing failed", batch=self._inserting and self._inserting.token)
                self._refused(e)

    def _next(self, now: float) -> tuple[Work, float | None]:
        """What to do now, or how long to wait (None: until woken)."""
        busy = self._current is not None or bool(self._spool.closed)
        if self._deadline is not None:
            if now >= self._deadline or self._failures or not (busy or self._spool.size):
                return Work.END, None
            return (Work.STORE if busy else Work.ROLL), None
        return due(self._waiting, self._pace, now, self._retry_at if self._failures else now, busy, bool(self._chunks))

    def _do(self, work: Work) -> None:
        self._inserting = None
        if work is Work.ROLL:
            self._spool.roll()
        elif work is Work.HURRY:
            if chunk := self._spool.mark():
                self._chunks.append(chunk)
            self._hurry()
        else:
            self._store()

    def _hurry(self) -> None:
        """Stores the hurried rows of the chunks that wait."""
        while self._chunks:
            chunk = self._chunks[0]
            for batch in batches.hurried(chunk.name, self._kept(chunk.segment)[chunk.index]):
                self._insert(batch, chunk.segment)
            self._chunks.popleft()

    def _store(self) -> None:
        """Stores one batch of the oldest closed segment; removes the segment after its last."""
        if self._current is None:
            self._current = self._open(self._spool.closed[0])
        current = self._current
        if current.left:
            self._insert(current.left[0], current.segment)
            current.left.popleft()
        if not current.left:
            self._seen.leave(current.ids)
            self._spool.remove(current.segment)
            self._chunks = deque(c for c in self._chunks if c.segment is not current.segment)
            self._done.pop(current.segment.name, None)
            self._current = None

    def _open(self, segment: Segment[Kept]) -> _Current:
        chunks = self._kept(segment)
        everything = [kept for chunk in chunks for kept in chunk]
        hurried = [b for i, chunk in enumerate(chunks) for b in batches.hurried(Chunk(segment, i).name, chunk)]
        left = deque(hurried + batches.patient(segment.name, everything))
        return _Current(segment, left, [kept.batch for kept in everything])

    def _kept(self, segment: Segment[Kept]) -> list[list[Kept]]:
        """What a segment holds, from memory or from its file."""
        held = segment.chunks
        if held is not None:
            return held
        return [[kept for payload in chunk if (kept := self._read(segment, payload))] for chunk in self._spool.read(segment)]

    def _read(self, segment: Segment[Kept], payload: bytes) -> Kept | None:
        try:
            return self._read_back(payload)
        except InputError as e:
            _log.error("an entry of the spool cannot be read and is left out", segment=segment.name, reason=str(e))
            self._health.quarantined("unreadable", 1)
            return None

    # --- one batch ---------------------------------------------------------------------------

    def _insert(self, batch: Batch, segment: Segment[Kept]) -> None:
        done = self._done.setdefault(segment.name, set())
        if batch.token in done:
            return
        rows = self._unknown(batch)
        sink = self._connect() if rows else None
        self._inserting = batch
        if sink:
            began = monotonic()
            if isinstance(rows[0], Record):
                sink.insert(rows, token=batch.token)
            else:
                sink.insert_rows(batch.table, rows, token=batch.token)
            self._health.stored(batch.table, len(rows), monotonic() - began)
        self._remember(batch)
        self._succeeded(done)

    def _succeeded(self, done: set[str]) -> None:
        if self._failures:
            _log.info("the store takes rows again")
        if self._inserting:
            done.add(self._inserting.token)
        self._inserting = None
        self._failures = 0
        self._failing_since = None

    def _unknown(self, batch: Batch) -> Sequence[Any]:
        """The rows that must be written: of the inventory only what is new to this process, once."""
        key = INVENTORY.get(batch.table)
        if key is None:
            return batch.rows
        rows: dict[int, Any] = {row[key]: row for row in batch.rows if isinstance(row, dict)}
        return [row for ident, row in rows.items() if (batch.table, ident) not in self._known]

    def _remember(self, batch: Batch) -> None:
        if key := INVENTORY.get(batch.table):
            for row in batch.rows:
                if isinstance(row, dict):
                    self._known[batch.table, row[key]] = None
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)

    # --- when it fails -----------------------------------------------------------------------

    def _failed(self, error: StoreError | InputError) -> None:
        code = error.code if isinstance(error, StoreError) else 0
        if not error.permanent or code in NOT_READY or self._inserting is None:
            self._later(str(error))
        elif code in DOUBTFUL or isinstance(error, QueryTimeout):
            now = monotonic()
            self._failing_since = self._failing_since or now
            if now - self._failing_since < PATIENCE:
                self._later(str(error))
            else:
                self._refused(error)
        else:
            self._refused(error)

    def _later(self, reason: str) -> None:
        if not self._failures:
            _log.warning("rows wait in the spool", reason=reason)
        self._health.failed()
        self._retry_at = monotonic() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    def _refused(self, error: Exception) -> None:
        """Puts the batch at hand aside for good."""
        batch = self._inserting
        if batch is None:
            self._later(f"{type(error).__name__}: {error}")
            return
        with suppress(OSError):  # where the disk refuses, the log line is what is left
            self._quarantine.put(batch, error)
        _log.error("a batch is quarantined", table=batch.table, rows=len(batch.rows), token=batch.token, reason=str(error))
        self._health.quarantined(batch.table, len(batch.rows))
        self._succeeded(self._done.setdefault(batch.token.split(".")[0].split(":")[0], set()))
