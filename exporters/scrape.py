"""Pages of other programs (`agent.scrape` in the settings): what the catalogue knows as readings, the rest as it is.

Each target has a thread, a deadline and bounds of its own: one that hangs, floods or lies costs itself.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import Final

from exporters.collector import Foreign, Observation, Reading, Site
from exporters.foreign import NAME_MAPS, NameMap
from exporters.foreign.series import SeriesBook
from exporters.foreign.translate import translate
from exporters.labels import told
from exporters.sources.prometheus_text import Page, Sample, parse
from exporters.sources.scraped import fetch
from pipeline.catalog.metrics import SCRAPE
from pipeline.clock import monotonic
from pipeline.settings import ScrapeSettings

AHEAD: Final = 60.0  # seconds that a page's clock may be ahead
_SHARE: Final = 0.9  # of the collector's deadline, within which every target answers or is given up

_log = logging.getLogger(__name__)

Fetch = Callable[[str, str, float, int], str]


@dataclass(frozen=True, slots=True)
class _Brought:
    """A pass: the page or why there is none, and how long it took (seconds)."""

    page: Page | None
    error: str
    seconds: float


class ScrapeCollector:
    """Brings the pages that are due, all at the same time."""

    def __init__(
        self, site: Site, maps: Sequence[NameMap] = NAME_MAPS, fetch: Fetch = fetch, clock: Callable[[], float] = monotonic
    ) -> None:
        limit = site.settings.timeout * _SHARE
        self._clock = clock
        self._targets = [_Target(one, site, maps, limit, fetch, clock) for one in site.settings.scrape]

    def absent(self) -> str:
        """No page is to be read."""
        return "" if self._targets else "agent.scrape names no page"

    def collect(self, now: datetime) -> Iterator[Observation]:
        """The readings, series and state of every target that was due."""
        asked = [target for target in self._targets if target.ask()]
        until = self._clock() + max((target.timeout for target in asked), default=0.0)
        for target in asked:
            target.wait(max(0.0, until - self._clock()))
        for target in asked:
            yield from target.told(now.timestamp())


class _Target:
    """One page. While a pass hangs, no other one is begun."""

    def __init__(
        self, settings: ScrapeSettings, site: Site, maps: Sequence[NameMap], limit: float, fetch: Fetch, clock: Callable[[], float]
    ) -> None:
        self.timeout = min(settings.timeout, limit)
        self._done = threading.Event()
        self._fresh_pass = False
        self._settings, self._node, self._maps = settings, site.node, maps
        self._fetch, self._clock = fetch, clock
        self._interval = max(settings.interval, site.settings.interval)
        self._due: float | None = None
        self._begun: float | None = None
        self._brought: _Brought | None = None
        self._given = {**settings.labels, "target": settings.name}
        self._book = SeriesBook(settings.max_series, self._given)
        self._rejected, self._error = 0, ""
        self._last_success: float | None = None
        self._orders: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._work, name=f"scrape-{settings.name}", daemon=True).start()

    def ask(self) -> bool:
        """Begins a pass where one is due and none hangs; whether there is something to tell."""
        clock = self._clock()
        if self._due is not None and clock < self._due - self._interval / 10:
            return False
        self._due = clock + self._interval
        self._fresh_pass = self._begun is None
        if self._fresh_pass:
            self._done.clear()
            self._brought, self._begun = None, clock
            self._orders.put(None)
        return True

    def wait(self, seconds: float) -> None:
        """Waits for the pass; one that hung last time already is not waited for again."""
        if self._fresh_pass:
            self._done.wait(seconds)

    def told(self, now: float) -> Sequence[Observation]:
        """What the pass brought; of a page that nothing can be made of, that it is none."""
        begun, brought = self._begun, self._brought
        if brought is None:
            waited = self._clock() - begun if begun is not None else 0.0
            brought = _Brought(None, "hangs", waited)
        try:
            return [*self._tell(brought, now)]
        except Exception as e:  # noqa: BLE001 - a page's defect is its target's alone
            return [*self._tell(_Brought(None, told(e), brought.seconds), now)]

    def _tell(self, brought: _Brought, now: float) -> Iterator[Observation]:
        page = brought.page
        if brought.error != self._error:
            _log.warning("scrape target %s: %s", self._settings.name, brought.error or "gives its page again")
        self._error = brought.error
        if page is None:
            yield from self._book.lose()
        else:
            self._last_success = now
            yield from self._observed(page, now)
        yield Reading(
            SCRAPE,
            {"node": self._node, "target": self._settings.name},
            {
                "scrape.ok": int(page is not None),
                "scrape.time": brought.seconds,
                "scrape.samples": len(page.samples) if page else None,
                "scrape.rejected": self._rejected,
                "scrape.dropped": self._book.dropped,
                "scrape.last_success": self._last_success,
            },
        )

    def _observed(self, page: Page, now: float) -> Iterator[Reading | Foreign]:
        samples = [sample for sample in page.samples if self._fresh(sample, now)]
        self._rejected += page.rejected + len(page.samples) - len(samples)
        readings, rest = translate(samples, self._maps, self._given, self._node)
        yield from readings
        yield from self._book.take(rest, page.types, now)

    def _fresh(self, sample: Sample, now: float) -> bool:
        """Whether a value is of now: a page that goes on showing what a dead source said last has its times stand still."""
        return sample.at is None or -2 * self._interval <= sample.at - now <= AHEAD

    def _work(self) -> None:
        while True:
            self._orders.get()
            began = self._clock()
            try:
                one = self._settings
                page, error = parse(self._fetch(one.url, one.token_file, self.timeout, one.max_bytes)), ""
            except Exception as e:  # noqa: BLE001 - the one catch-all of this thread: a page's defect is its target's alone
                page, error = None, told(e)
            self._brought = _Brought(page, error, self._clock() - began)
            self._begun = None
            self._done.set()
