"""From the agents' readings and events to how each rule stands at each place: at most one question a second, where there are new ones."""

import re
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from alerts.growth import Growth
from alerts.watched import Place, Said, Standing, Watched, judge, missed
from pipeline.catalog.layers import Layer
from pipeline.catalog.metrics import AGENT, HOST, MOUNT, SCHED_NODE, Family
from pipeline.catalog.metrics import BY_NAME as METRICS
from pipeline.catalog.rules import FAMILIES, RANK, RULES, Happened, Missing, Rule
from pipeline.queries.counts_since import counts_since
from pipeline.queries.devices_named import devices_named
from pipeline.queries.families_there import families_there
from pipeline.queries.fault_events import fault_events
from pipeline.queries.readings_first import readings_first
from pipeline.queries.readings_since import DeviceReading, readings_since
from pipeline.records import Event
from pipeline.store import Store

READ_SECONDS: Final = 1.0  # between two looks at the readings, and one more for each ROWS that the last one brought
ROWS: Final = 10_000
HISTORY: Final = timedelta(minutes=2)  # read at the beginning: longer than any rule's hold
OVERLAP: Final = timedelta(seconds=60)  # a reading may be so late, and a node's clock so far behind
SHORT: Final = timedelta(seconds=15)  # the same where the last look brought more than ROWS
AHEAD: Final = timedelta(seconds=5)  # one from further in the future was written by a clock that ran ahead
EVENTS: Final = timedelta(minutes=10)  # an event that is older was not ours to handle
FIRST: Final = timedelta(days=1)  # how far back "always was so" reaches
FORGET: Final = timedelta(minutes=10)  # a device that is gone for so long is not remembered
PASSES: Final = 8
_GONE_AFTER: Final = 2  # passes without it, after which a device counts as missing: one may have been sent in two halves
_TICK: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class _Device:
    """A device, its last known values, and how the rules stand at it."""

    labels: Mapping[str, str]
    seen_at: datetime
    standings: list[Standing]
    last: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    grown: dict[str, Growth] = field(default_factory=dict)


class Watch:
    """Keeps the standings. `interval` is the agents' own, in seconds: what is longer than a few of them is a gap."""

    def __init__(self, store: Store, interval: float, rules: Sequence[Rule] = RULES) -> None:
        self._store = store
        self._rules = rules
        self._order = {id(rule): n for n, rule in enumerate(rules)}
        self._over = _windows(rules)
        self._turned = {rule.family.name for rule in rules if rule.turned}
        self._kinds = sorted({rule.when.kind.name for rule in rules if isinstance(rule.when, Happened)})
        self._gap = 3 * interval + 5
        self._due = 0.0
        self._fresh = False
        self._overlap = OVERLAP
        self._read_to: datetime | None = None
        self._seen = Watched()
        self._devices: dict[tuple[str, str], dict[int, _Device]] = {}  # by family and node
        self._attributes: dict[int, Mapping[str, str]] = {}
        self._passes: dict[tuple[str, str], deque[datetime]] = {}
        self._standings: dict[tuple[str, str], list[Standing]] = {}
        self._of_events: dict[str, list[Standing]] = {}  # by node
        self._raised: dict[int, Standing] = {}
        self._times: dict[tuple[int, str], list[datetime]] = {}  # of events, by number of the rule and place
        self._event_ids: dict[str, datetime] = {}
        self._forgot: datetime | None = None

    def look(self, now: datetime, monotonic: float, *, fresh: bool, news: bool) -> Watched:
        """What has been seen by `now`. `fresh`: there may be new readings; `news`: new events. Raises StoreError; nothing is lost then."""
        self._fresh |= fresh
        begin = self._read_to is None
        due = begin or (self._fresh and monotonic >= self._due)
        there = families_there(self._store, FAMILIES) if due else []
        readings = readings_since(self._store, there, self._since(now), now + AHEAD) if due else []
        self._learn_names(readings)
        first = readings_first(self._store, [f for f in there if f.name in self._turned], now - FIRST) if begin and readings else []
        events = self._read_events(now) if news or begin else []
        if due:
            self._overlap = OVERLAP if len(readings) <= ROWS else SHORT
            self._read_to, self._due, self._fresh = now, monotonic + READ_SECONDS + len(readings) // ROWS, False
        self._remember(first, {r.device_id for r in readings})
        if begin and readings:
            self._recall(readings, now)
        if readings or events:
            self._take(readings, events)
            self._forget(now)
            self._seen = self._watched()
        return self._seen

    def _since(self, now: datetime) -> datetime:
        return self._read_to - self._overlap if self._read_to else now - HISTORY

    def _watched(self) -> Watched:
        mounts, collectors = self._labels(MOUNT, "mount_point"), self._labels(AGENT, "collector")
        raised = sorted(self._raised.values(), key=lambda standing: self._order[id(standing.rule)])  # the more exact row speaks first
        return Watched(raised=tuple(raised), standings=self._standings, passes=self._passes, mounts=mounts, collectors=collectors)

    def _labels(self, family: Family, label: str) -> dict[str, frozenset[str]]:
        """What the devices of a family are called, by node."""
        devices = ((node, devices) for (name, node), devices in self._devices.items() if name == family.name)
        return {node: frozenset(device.labels[label] for device in mine.values()) for node, mine in devices}

    # --- reading ---------------------------------------------------------------------------------

    def _learn_names(self, readings: Iterable[DeviceReading]) -> None:
        unknown = {r.device_id for r in readings if r.family.identity != ("node",)} - self._attributes.keys()
        if unknown:
            self._attributes |= devices_named(self._store, sorted(unknown))

    def _read_events(self, now: datetime) -> list[Event]:
        if not self._kinds:
            return []
        found = fault_events(self._store, self._kinds, now - EVENTS, now + AHEAD)
        return [event for event in found if event.id not in self._event_ids]

    # --- taking in -------------------------------------------------------------------------------

    def _remember(self, first: Iterable[DeviceReading], there: Container[int]) -> None:
        """How each device that is there was when it was first seen, for the rules that ask only for a change."""
        for reading in first:
            device = self._device(reading) if reading.device_id in there else None
            for standing in device.standings if device else ():
                if standing.rule.turned and judge(standing.rule, (reading.at, reading.values), {}, self._gap)[0] is Said.GOOD:
                    standing.was_good = True

    def _recall(self, readings: Iterable[DeviceReading], now: datetime) -> None:
        """How the counters grew before this leader began to look, for the rules that ask for an increase over a while."""
        there: dict[int, tuple[_Device, datetime]] = {}  # with its first reading that this leader looks at
        for reading in sorted(readings, key=lambda one: one.at):
            if reading.device_id not in there and (device := self._device(reading)) is not None:
                there[reading.device_id] = device, reading.at
        for count in counts_since(self._store, now - timedelta(seconds=max(self._over.values()))) if self._over else ():
            device, until = there.get(count.device_id, (None, now))
            if device is not None and count.metric in self._over and count.first < until:
                for at in (count.first, min(count.last, until - _TICK)):
                    self._grow(device, count.metric, at, count.value)

    def _grow(self, device: _Device, name: str, at: datetime, value: float) -> None:
        growth = device.grown.get(name)
        if growth is None:
            growth = device.grown[name] = Growth(METRICS[name][1], self._over[name])
        growth.add(at, value)

    def _take(self, readings: Sequence[DeviceReading], events: Sequence[Event]) -> None:
        """In the order in which it happened, an event before a reading of the same time."""
        told: list[tuple[datetime, int, Event | DeviceReading]] = [(e.at, 0, e) for e in events]
        told += [(r.at, 1, r) for r in readings]
        touched: dict[tuple[str, str], set[datetime]] = {}
        for at, _, what in sorted(told, key=lambda one: one[:2]):
            if isinstance(what, Event):
                self._event(what)
            elif self._reading(what):
                touched.setdefault((what.family.name, what.node), set()).add(at)
                if what.family is AGENT and what.values.get("agent.absent"):  # its collector looked: no half of a pass
                    family = self._attributes[what.device_id]["collector"]
                    touched.setdefault((family, what.node), set()).update(at - n * _TICK for n in range(_GONE_AFTER))
        for (family, node), times in touched.items():
            passes = self._passes.setdefault((family, node), deque(maxlen=PASSES))
            fresh = sorted(at for at in times if not passes or at > passes[-1])
            passes.extend(fresh)
            if fresh:
                self._miss(family, node, passes)

    def _reading(self, reading: DeviceReading) -> bool:
        """Takes in what is newer than what is known of its device."""
        device = self._device(reading)
        if device is None or device.seen_at >= reading.at:
            return False
        device.seen_at = reading.at
        known = {name: value for name, value in reading.values.items() if value is not None}
        for name in self._over.keys() & known.keys():
            self._grow(device, name, reading.at, known[name])
        for standing in device.standings:
            said, value = judge(standing.rule, (reading.at, reading.values), device.last, self._gap, device.grown)
            shown = known if value is None else {"value": value, **known}
            self._observe(standing, reading.at, said, shown)
        if reading.family in (HOST, SCHED_NODE):  # of what a scheduler told, it tells on itself: its node may have no agent
            for standing in self._of_events.get(reading.node, ()):
                if reading.family is SCHED_NODE and standing.rule.fault.layer is not Layer.SCHEDULER:
                    continue
                if standing.bad.last is None or reading.at > standing.bad.last:
                    self._observe(standing, reading.at, Said.GOOD, {})
        device.last |= {name: (reading.at, value) for name, value in known.items()}
        return True

    def _miss(self, family: str, node: str, passes: Sequence[datetime]) -> None:
        """The devices that were not in the last passes, for the rules that say so."""
        for device in self._devices.get((family, node), {}).values():
            if missed(passes, device.seen_at) < _GONE_AFTER:
                continue
            for standing in device.standings:
                if isinstance(standing.rule.when, Missing):
                    self._observe(standing, passes[-1], Said.BAD, {"last_seen": device.seen_at.isoformat()})

    def _event(self, event: Event) -> None:
        self._event_ids[event.id] = event.at
        labels = _event_labels(event)
        for number, rule in enumerate(self._rules):
            when = rule.when
            if not isinstance(when, Happened) or not when.fits(event.kind, event.code) or not event.node or not _applies(rule, labels):
                continue
            standing = self._event_standing(rule, event.node, labels, event.at)
            times = self._times.setdefault((number, standing.place.key), [])
            times[:] = [at for at in [*times, event.at] if (event.at - at).total_seconds() <= when.within or at == event.at]
            if len(times) >= when.times:
                self._observe(standing, event.at, Said.BAD, {"count": float(event.count), **labels})

    def _observe(self, standing: Standing, at: datetime, said: Said, shown: Mapping[str, float | str]) -> None:
        standing.seen_at = max(standing.seen_at, at)
        standing.observe(at, said, shown, self._gap)
        if standing.raised:
            self._raised[id(standing)] = standing
        else:
            self._raised.pop(id(standing), None)

    # --- standings -------------------------------------------------------------------------------

    def _device(self, reading: DeviceReading) -> _Device | None:
        """The device of a reading; None where the inventory does not name it yet: then the reading comes again."""
        mine = self._devices.setdefault((reading.family.name, reading.node), {})
        if reading.device_id in mine:
            return mine[reading.device_id]
        labels = self._attributes.get(reading.device_id)
        if labels is None and reading.family.identity != ("node",):
            return None
        labels = {**(labels or {}), "node": reading.node}
        looking = [r for r in self._rules if not isinstance(r.when, Happened) and r.family is reading.family and _applies(r, labels)]
        standings = [self._standing(rule, reading.node, labels, reading.at) for rule in looking]
        device = mine[reading.device_id] = _Device(labels, reading.at - _TICK, standings)
        if reading.family is HOST:
            for rule in self._rules:
                if isinstance(rule.when, Happened) and not rule.entity:
                    self._event_standing(rule, reading.node, labels, reading.at)
        return device

    def _standing(self, rule: Rule, node: str, labels: Mapping[str, str], at: datetime) -> Standing:
        place = Place(node, rule.entity, _value(rule, labels), labels)
        made = Standing(rule, place, at)
        self._standings.setdefault((rule.fault.name, place.key), []).append(made)
        return made

    def _event_standing(self, rule: Rule, node: str, labels: Mapping[str, str], at: datetime) -> Standing:
        value = _value(rule, labels)
        mine = self._of_events.setdefault(node, [])
        found = next((s for s in mine if s.rule is rule and s.place.value == value), None)
        if found is None:
            found = self._standing(rule, node, labels, at)
            mine.append(found)
        return found

    def _forget(self, now: datetime) -> None:
        """Now and then: drops events that are past, what they raised and is over, and devices that have not been there for long."""
        if self._forgot and now - self._forgot < FORGET / 10:
            return
        self._forgot = now
        self._event_ids = {i: at for i, at in self._event_ids.items() if now - at <= 2 * EVENTS}
        for (family, node), devices in self._devices.items():
            passes = self._passes.get((family, node), ())
            for number, device in list(devices.items()):
                silent = now - device.seen_at
                if silent > FIRST or (silent > FORGET and missed(passes, device.seen_at)):
                    del devices[number]
                    self._attributes.pop(number, None)
                    for standing in device.standings:
                        self._drop(standing)
        for mine in self._of_events.values():
            for standing in [s for s in mine if s.place.value and s.over and s.good.since and now - s.good.since > FORGET]:
                mine[:] = [s for s in mine if s is not standing]
                self._drop(standing)

    def _drop(self, standing: Standing) -> None:
        self._raised.pop(id(standing), None)
        left = self._standings[standing.rule.fault.name, standing.place.key]
        left[:] = [s for s in left if s is not standing]
        if not left:
            del self._standings[standing.rule.fault.name, standing.place.key]


def _windows(rules: Iterable[Rule]) -> dict[str, float]:
    """The metrics whose increase a rule looks at over a while, and the longest such while in seconds."""
    found: dict[str, float] = {}
    for limit in (limit for rule in rules if isinstance(rule.when, tuple) for limit in rule.when):
        if limit.within:
            found[limit.metric.name] = max(limit.within, found.get(limit.metric.name, 0.0))
    return found


def _event_labels(event: Event) -> dict[str, str]:
    told = {name: getattr(event, name) for name in ("node", "device", "run", "attempt", "code", "message")}
    rank = {} if event.rank is None else {"rank": str(event.rank)}
    return {**event.attrs, **{k: v for k, v in told.items() if v}, **rank}


def _value(rule: Rule, labels: Mapping[str, str]) -> str:
    """What is hit, "" for the node; two runs may have ranks of one number on it."""
    if rule.entity == RANK:
        return f"{labels.get('run', '')}/{labels[RANK]}"
    return labels[rule.entity] if rule.entity else ""


def _applies(rule: Rule, labels: Mapping[str, str]) -> bool:
    """Whether the rule looks at what bears `labels` at all."""
    if rule.entity and not labels.get(rule.entity):
        return False
    return not any(_pattern(pattern).fullmatch(labels.get(name, "")) for name, pattern in rule.never.items())


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
