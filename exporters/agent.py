"""The node's agent: collectors, the trainers' rings, one push to ingest, one page for Prometheus."""

import logging
import math
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from exporters import gpu_inventory
from exporters.collector import Site
from exporters.cursors import Cursors
from exporters.encode import Accepted, accept, prometheus_text
from exporters.health import Health
from exporters.judge import Judge
from exporters.natives import Natives
from exporters.pages import Board, PageServer, metrics_page
from exporters.passes import Outcome, Runner, Schedule
from exporters.registry import COLLECTORS, Entry
from exporters.sending import foreign
from exporters.sending.leftovers import folder_of
from exporters.sending.metrics import MetricMessages
from exporters.sending.sender import Sender
from exporters.sources import procfs
from exporters.training import RingPoller
from pipeline.catalog.events import AGENT_STARTED, COLLECTOR_FAILED, EventKind
from pipeline.catalog.metrics import AGENT, GPU
from pipeline.clock import monotonic, utcnow
from pipeline.errors import SettingsError
from pipeline.records import Event
from pipeline.secrets import ingest_token
from pipeline.settings import Settings

STOP_WITHIN: Final = 3.0  # seconds that the last telemetry gets; the agent ends within five
STALE_PASSES: Final = 2.0  # intervals after which a value is no longer shown
_LAG: Final = 5.0  # seconds without a turn of the loop after which /healthz says so
_log = logging.getLogger(__name__)


class Agent:
    """All of the agent's parts. `turn` is one turn of its loop; nothing runs by itself but the threads of the parts."""

    def __init__(self, settings: Settings, site: Site, sender: Sender, entries: Sequence[Entry] = COLLECTORS) -> None:
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
        self._runners = _runners(settings, site, entries)
        self._schedule, self._judge = Schedule(self._runners, settings.node), Judge(settings.node)
        self._natives = Natives(entries)
        self._intervals = {runner.name: runner.every for runner in self._runners}
        self._messages: dict[str, MetricMessages] = {}
        self._health = Health(sender.stats)
        self._heard: set[str] = set()
        self._about_due: float | None = None
        self._told = False
        self._turned = monotonic()
        self.board = Board()
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
        """Reads the rings a last time, sends what waits for at most STOP_WITHIN, and keeps how far it came."""
        self.turn(utcnow(), monotonic())
        self._sender.close(STOP_WITHIN)
        self._cursors.settle(self._sender.settled)
        self._rings.close()

    def _publish(self, outcome: Outcome, now: datetime, clock: float) -> None:
        events = [*outcome.events]
        if self._judge.failed(outcome, now.timestamp()):
            events.append(_event(COLLECTOR_FAILED, self._node, code=outcome.name, message=outcome.error))
        if events:
            self._send_events(events)
            self._sender.flush()
        self._kept |= outcome.kept
        self._gpus = self._gpus | _gpus_in(outcome.readings)
        self._heard.add(outcome.name)
        if not outcome.error:
            readings = self._natives.without(outcome.name, outcome.readings, clock)
            self._show(outcome.name, readings, now, clock + STALE_PASSES * self._intervals[outcome.name], clock)
            self._sender.send_metrics(foreign.encode(outcome.foreign, now))

    def _tell_of_itself(self, now: datetime, clock: float) -> None:
        """The agent's own readings, every interval; for the first time as soon as every collector was heard of, or should have been."""
        if self._about_due is None:
            self._about_due = clock + self._settings.agent.timeout
        if clock < self._about_due and (self._told or len(self._heard) < len(self._runners)):
            return
        self._told = True
        self._about_due = clock + self._settings.agent.interval
        self._show(AGENT.name, accept(self._judge.readings())[0], now, clock + STALE_PASSES * self._settings.agent.interval, clock)
        self._sender.send_metrics(self._health.scopes())

    def _show(self, name: str, readings: Sequence[Accepted], now: datetime, until: float, clock: float) -> None:
        self._natives.note(name, readings, until)
        self.board.put(name, prometheus_text(self._natives.own(name, readings, clock)), until)
        self._sender.send_metrics(self._messages.setdefault(name, MetricMessages()).encode(readings, now))

    def _send_events(self, events: Iterable[Event]) -> None:
        self._sender.send_records([("surefoot.event", event) for event in events])


def serve(settings: Settings, *, once: bool = False) -> None:
    """Runs the agent until SIGTERM or SIGINT; with `once` makes one pass, prints it as Prometheus text and returns.

    Raises SettingsError where the page's address or the ingest token cannot be had.
    """
    site = Site(settings.node, probe_timeout=min(2.0, settings.agent.timeout / 2))
    if once:
        sys.stdout.write(one_pass(settings, site))
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sender = Sender(
        settings.ingest.endpoint,
        _token(settings),
        settings.agent.timeout,
        node=settings.node,
        flush_interval=settings.agent.flush_interval,
        buffer_bytes=settings.agent.buffer_bytes,
        leftovers=folder_of(settings.ring_dir),
    )
    agent = Agent(settings, site, sender)
    pages = PageServer(settings.agent.host, settings.agent.port, {"/metrics": metrics_page(agent.board), "/healthz": agent.health})
    _loop(agent, settings.agent.ring_interval, stop)
    pages.close()
    agent.close()


def one_pass(settings: Settings, site: Site, entries: Sequence[Entry] = COLLECTORS) -> str:
    """One pass of every collector, as Prometheus text. Sends nothing."""
    now, judge = utcnow(), Judge(settings.node)
    outcomes = look(settings, site, entries)
    for outcome in outcomes:
        judge.failed(outcome, now.timestamp())
    natives = Natives(entries)
    for outcome in outcomes:
        natives.note(outcome.name, outcome.readings, math.inf)
    readings = [reading for outcome in outcomes for reading in natives.without(outcome.name, outcome.readings, 0.0)]
    return prometheus_text(readings) + prometheus_text(accept(judge.readings())[0])


def look(settings: Settings, site: Site, entries: Sequence[Entry] = COLLECTORS) -> list[Outcome]:
    """What one pass of every collector gives, in their order, within the agent's deadline. Sends nothing."""
    runners = _runners(settings, replace(site, settings=settings.agent), entries, math.inf)
    schedule = Schedule(runners, settings.node)
    outcomes = {outcome.name: outcome for outcome in schedule.turn(utcnow(), monotonic())}
    while schedule.waiting:
        threading.Event().wait(0.005)
        outcomes |= {outcome.name: outcome for outcome in schedule.turn(utcnow(), monotonic())}
    return [outcomes[runner.name] for runner in runners]


def _runners(settings: Settings, site: Site, entries: Sequence[Entry], every: float | None = None) -> list[Runner]:
    """A runner for each collector; `every` in place of its own pace, where it is to work once."""
    paces = [(entry, every or entry.every or settings.agent.interval) for entry in entries]
    return [Runner(entry.name, entry.make(site), pace, settings.agent.timeout) for entry, pace in paces]


def _gpus_in(readings: Iterable[Accepted]) -> dict[str, str]:
    """UUIDs by PCI address, of the GPUs among the readings."""
    labels = [dict(reading.labels) for reading in readings if reading.family is GPU]
    return {told["pci"]: told["uuid"] for told in labels if told.get("pci")}


def _loop(agent: Agent, interval: float, stop: threading.Event) -> None:
    last = ""
    while not stop.is_set():
        began = monotonic()
        try:
            agent.turn(utcnow(), began)
        except Exception as e:  # noqa: BLE001 - the process's one loop: a defect in one turn must not end the node's telemetry
            if str(e) != last:
                _log.exception("a turn of the agent's loop failed")
            last = str(e)
        stop.wait(max(0.0, began + interval - monotonic()))


def _token(settings: Settings) -> str:
    try:
        return ingest_token(settings)
    except OSError as e:
        raise SettingsError(f"no ingest token: {e.strerror} ({e.filename}; also SUREFOOT_INGEST__TOKEN)") from e


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
