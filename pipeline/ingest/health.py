"""What ingest says about itself: received = kept + rejected, and kept rows = stored + quarantined + in the spool."""

from collections.abc import Callable

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from pipeline.clock import Clock, utcnow
from pipeline.otlp.decoded import Decoded

log = structlog.get_logger("surefoot.ingest")


class Health:
    """Counts since the start. `spool_bytes` and `spool_oldest` (seconds since 1970) are asked for when wanted."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, spool_bytes: Callable[[], int], spool_oldest: Callable[[], float | None], clock: Clock = utcnow) -> None:
        self._registry = r = CollectorRegistry()
        self._clock = clock
        self._oldest = spool_oldest
        self.spool_bytes = spool_bytes
        self.last_insert: float | None = None  # seconds since 1970
        self.store_up = False
        self.refusing = ""  # why the spool takes nothing just now
        self._items = Counter(
            "surefoot_ingest_items", "Points and log records received, by what became of them", ["signal", "outcome"], registry=r
        )
        self._requests = Counter("surefoot_ingest_requests", "Requests, by status", ["signal", "status"], registry=r)
        self._rows = Counter("surefoot_ingest_rows", "Rows, by what became of them", ["table", "outcome"], registry=r)
        self._inserts = Histogram("surefoot_ingest_insert_seconds", "How long an insert took", registry=r)
        self._skew = Gauge("surefoot_ingest_clock_skew_seconds", "How far ahead the last refused time was", registry=r)
        self._failures = Counter("surefoot_ingest_insert_failures", "Inserts that failed and are repeated", registry=r)
        Gauge("surefoot_ingest_spool_bytes", "Bytes acknowledged and not stored yet", registry=r).set_function(spool_bytes)
        Gauge("surefoot_ingest_spool_age_seconds", "Age of the oldest of them", registry=r).set_function(lambda: self.oldest_age() or 0.0)
        Gauge("surefoot_ingest_spool_refusing", "1 where the last entry could not be kept", registry=r).set_function(
            lambda: bool(self.refusing)
        )
        Gauge("surefoot_ingest_store_up", "1 where the last call to the store succeeded", registry=r).set_function(lambda: self.store_up)

    def answered(self, signal: str, status: int) -> None:
        """A request was answered."""
        self._requests.labels(signal, str(status)).inc()

    def received(self, signal: str, decoded: Decoded) -> None:
        """A request was kept."""
        self._items.labels(signal, "kept").inc(decoded.kept)
        self._items.labels(signal, "rejected").inc(decoded.rejected)
        if decoded.skew:
            self._skew.set(decoded.skew)

    def kept(self) -> None:
        """The spool took an entry."""
        if self.refusing:
            log.info("spool_keeps_again")
        self.refusing = ""

    def not_kept(self, why: str) -> None:
        """The spool could not take an entry; told once until it can."""
        if not self.refusing:
            log.error("spool_refuses", reason=why)
        self.refusing = why

    @property
    def status(self) -> str:
        """`ok`, or what is wrong."""
        if self.refusing:
            return f"nothing can be kept: {self.refusing}"
        return "ok" if self.store_up else "the store is away, or nothing was stored yet"

    def repeated(self, signal: str, decoded: Decoded) -> None:
        """A request came again that is kept already."""
        self._items.labels(signal, "repeated").inc(decoded.kept + decoded.rejected)

    def stored(self, table: str, rows: int, seconds: float) -> None:
        """An insert of `rows` rows was acknowledged by the store after `seconds`."""
        self._rows.labels(table, "stored").inc(rows)
        self._inserts.observe(seconds)
        self.last_insert = self._clock().timestamp()
        self.store_up = True

    def quarantined(self, table: str, rows: int) -> None:
        """Rows were put aside that the store refuses."""
        self._rows.labels(table, "quarantined").inc(rows)

    def failed(self) -> None:
        """An insert failed and will be repeated."""
        self._failures.inc()
        self.store_up = False

    def oldest_age(self) -> float | None:
        """Seconds since the oldest entry of the spool was acknowledged; None where it is empty."""
        oldest = self._oldest()
        return None if oldest is None else max(0.0, self._clock().timestamp() - oldest)

    def page(self) -> bytes:
        """The Prometheus text page."""
        return generate_latest(self._registry)
