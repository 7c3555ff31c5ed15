"""A node's clock that differs from ingest's, told in ingest's time: what is stamped by a clock that is wrong may never be looked at."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from exporters.collector import Site
from exporters.sources import procfs
from pipeline.catalog.events import CLOCK_SKEWED
from pipeline.clock import monotonic
from pipeline.records import Event

EVERY: Final = 2.0  # seconds between two looks
LIMIT: Final = 2.0  # seconds that a clock may be off: the bounds that are known are about as wide
REPEAT: Final = 15.0  # seconds after which it is told again, while it lasts


class ClockCollector:
    """Tells while the clock is off by LIMIT or more."""

    def __init__(self, site: Site, clock: Callable[[], float] = monotonic) -> None:
        self._site, self._clock = site, clock
        self._boot = procfs.boot_id(site.proc)
        self._told_at: float | None = None

    def collect(self, now: datetime) -> Iterator[Event]:
        """That the clock is off, at most every REPEAT seconds; nothing where ingest has not answered lately."""
        offset, clock = self._site.clock_offset(), self._clock()
        if offset is None or abs(offset) < LIMIT:
            self._told_at = None
            return
        if self._told_at is not None and clock - self._told_at < REPEAT:
            return
        self._told_at = clock
        at = now - timedelta(seconds=offset)
        name = f"{self._site.node}\x1f{self._boot}\x1fclock\x1f{clock}"
        code = "ahead" if offset > 0 else "behind"
        yield Event(
            id=blake2b(name.encode(errors="replace"), digest_size=16).hexdigest(),
            at=at,
            kind=CLOCK_SKEWED.name,
            layer=CLOCK_SKEWED.layer.value,
            severity=CLOCK_SKEWED.severity.value,
            node=self._site.node,
            code=code,
            message=f"the clock is {abs(offset):.1f} s {code}",
            attrs={"offset": f"{abs(offset):.1f}"},
        )
