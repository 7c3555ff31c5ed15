"""The node's agent: collectors, the trainers' rings, one push to ingest, one page for Prometheus."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from exporters.collector import Site
from exporters.compat.registry import ForeignText
from exporters.cursors import Cursors
from exporters.encode import Accepted, Arranger, PageText, accept
from exporters.gpu import inventory as gpu_inventory
from exporters.health import Health
from exporters.judge import Judge
from exporters.natives import Natives
from exporters.pages import Board
from exporters.passes import Outcome, Schedule, close, runners_of
from exporters.registry import COLLECTORS, Entry
from exporters.sending import foreign
from exporters.sending.metrics import MetricMessages
from exporters.sending.outlet import Outlet
from exporters.sources import procfs
from exporters.textfile import TextFile
from exporters.training import RingPoller
from pipeline.catalog.events import AGENT_STARTED, COLLECTOR_FAILED, EventKind
from pipeline.catalog.metrics import AGENT, GPU
from pipeline.clock import monotonic, utcnow
from pipeline.records import Event
from pipeline.settings import Settings

STOP_WITHIN: Final = 3.0  # seconds that the last telemetry gets; the agent ends within five
CLOSE_WITHIN: Final = 1.0  # seconds that collectors get to end the processes that they began
STALE_PASSES: Final = 2.0  # intervals after which a value is no longer shown
_LAG: Final = 5.0  # seconds without a turn of the loop after which /healthz says so


class Agent:
    """All of the agent's parts. `turn` is one turn of its loop; nothing runs by itself but the threads of the parts."""

    def __init__(
        self,
        settings: Settings,
        site: Site,
        sender: Outlet,
        entries: Sequence[Entry] = COLLECTORS,
        *,
        foreign: Sequence[ForeignText] = (),
        textfile: TextFile | None = None,
    ) -> None:
        self._settings = settings
        self._node = settings.node
        self._sender = sender
        self._cursors = Cursors(settings.state_dir / "agent.rings.json")
        self._kept_in = Cursors(settings.state_dir / "agent.collectors.json")
        self._kept = self._kept_in.load()
        self._rings = RingPoller(settings.ring_dir, settings.node, site.proc, site.ticks, self._cursors.load())
        self._gpus = gpu_inventory.addresses(self._kept)
        site = replace(
            site,
            ranks=self._rings.ranks,
            kept=dict(self._kept),
            settings=settings.agent,
            gpus=lambda: self._gpus,
            clock_offset=sender.clock_offset,
        )
        self._runners = runners_of(settings, site, entries)
        self._schedule, self._judge = Schedule(self._runners, settings.node), Judge(settings.node)
        self._natives = Natives(entries)
        self._intervals = {runner.name: runner.every for runner in self._runners}
        self._encoders: dict[str, tuple[PageText, MetricMessages]] = {}
        self._health = Health(sender.stats)
        self._heard: set[str] = set()
        self._about_due: float | None = None
        self._told = False
        self._turned = monotonic()
        self.board = Board(foreign)
        self._textfile = textfile
        self._send_events([_event(AGENT_STARTED, self._node, code=procfs.boot_id(site.proc))])

    def turn(self, now: datetime, clock: float) -> None:
        """Reads the rings, begins or ends the collectors' passes where it is time, sends. `clock` is monotonic seconds."""
        self._turned = clock
        for cursors in (self._cursors, self._kept_in):
            cursors.settle(self._sender.settled)
        if records := self._rings.poll(now, clock):
            self._sender.send_records(records)
            self._sender.flush()
        for outcome in self._schedule.turn(now, clock):
            self._publish(outcome, now, clock)
        self._cursors.mark(self._sender.queued, self._rings.cursors())
        self._kept_in.mark(self._sender.queued, self._kept)
        self._tell_of_itself(now, clock)

    def health(self) -> tuple[int, str]:
        """HTTP status and text: whether the loop still turns."""
        lag = monotonic() - self._turned
        return (200, "ok\n") if lag < _LAG else (503, f"the agent's loop has been held up for {lag:.0f} s\n")

    def close(self) -> None:
        """Reads the rings a last time, sends what waits for at most STOP_WITHIN, and keeps how far it came; ends what collectors began."""
        self.turn(utcnow(), monotonic())
        self._sender.close(STOP_WITHIN)
        for cursors in (self._cursors, self._kept_in):
            cursors.settle(self._sender.settled)
        self._rings.close()
        close(self._runners, CLOSE_WITHIN)
        if self._textfile:
            self._textfile.close()

    def _publish(self, outcome: Outcome, now: datetime, clock: float) -> None:
        events = [*outcome.events]
        if self._judge.failed(outcome, now.timestamp()):
            events.append(_event(COLLECTOR_FAILED, self._node, code=outcome.name, message=outcome.error))
        if events:
            self._send_events(events)
            self._sender.flush()
        self._kept = {key: value for key, value in {**self._kept, **outcome.kept}.items() if value is not None}
        self._gpus = self._gpus | _gpus_in(outcome.readings)
        self._heard.add(outcome.name)
        if not outcome.error:
            readings = self._natives.without(outcome.name, outcome.readings, clock)
            self._show(outcome.name, readings, now, clock + STALE_PASSES * self._intervals[outcome.name], clock)
            self._sender.send_metrics(foreign.encode(outcome.foreign, now))

    def _tell_of_itself(self, now: datetime, clock: float) -> None:
        """The agent's own readings, every interval, and at once where there is nothing of something any more; for the first time as soon as
        every collector was heard of, or should have been."""
        if self._about_due is None:
            self._about_due = clock + self._settings.agent.timeout
        news = self._judge.news if self._told else len(self._heard) == len(self._runners)
        if clock < self._about_due and not news:
            return
        self._told = True
        self._about_due = clock + self._settings.agent.interval
        of_itself = [*self._judge.readings(now.timestamp()), self._health.reading(self._node)]
        self._show(AGENT.name, accept(of_itself)[0], now, clock + STALE_PASSES * self._settings.agent.interval, clock)
        self._sender.send_metrics(self._health.scopes())
        if self._textfile:
            self._textfile.put(self.board.page(clock))

    def _show(self, name: str, readings: Sequence[Accepted], now: datetime, until: float, clock: float) -> None:
        self._natives.note(name, readings, until)
        shown = self._natives.own(name, readings, clock)
        page, messages = self._encoders_of(name)
        self.board.put(name, page.of(shown), until, shown)
        self._sender.send_metrics(messages.encode(readings, now))

    def _encoders_of(self, name: str) -> tuple[PageText, MetricMessages]:
        if name not in self._encoders:
            arranger = Arranger()
            self._encoders[name] = PageText(arranger), MetricMessages(arranger)
        return self._encoders[name]

    def _send_events(self, events: Iterable[Event]) -> None:
        self._sender.send_records([("surefoot.event", event) for event in events])


def _gpus_in(readings: Iterable[Accepted]) -> dict[str, str]:
    """UUIDs by PCI address, of the GPUs among the readings."""
    labels = [dict(reading.labels) for reading in readings if reading.family is GPU]
    return {told["pci"]: told["uuid"] for told in labels if told.get("pci")}


def _event(what: EventKind, node: str, *, code: str, message: str = "") -> Event:
    return Event(
        id=uuid4().hex,
        at=utcnow(),
        kind=what.name,
        layer=what.layer.value,
        severity=what.severity.value,
        node=node,
        code=code,
        message=message,
    )
