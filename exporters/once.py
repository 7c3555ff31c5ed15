"""One pass of every collector: for a person who looks, a script, `surefoot doctor`. It sends nothing and keeps nothing."""

import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from exporters.collector import Site
from exporters.compat.registry import ForeignText
from exporters.encode import Accepted, accept, prometheus_text
from exporters.judge import Judge
from exporters.natives import Natives
from exporters.passes import Outcome, Schedule, close, runners_of
from exporters.registry import COLLECTORS, Entry
from pipeline.clock import Clock, monotonic, utcnow
from pipeline.settings import Settings

SAVED_WITHIN: Final = 600.0  # seconds: at some ten MB a second, more than any kernel says in years


def look(settings: Settings, site: Site, entries: Sequence[Entry] = COLLECTORS, clock: Clock = utcnow) -> list[Outcome]:
    """What one pass of every collector gives, in their order, within the agent's deadline; a saved kernel log is read to its end."""
    patience = {"kernel": SAVED_WITHIN} if site.kmsg.is_file() else {}
    runners = runners_of(settings, replace(site, settings=settings.agent), entries, math.inf, patience)
    schedule = Schedule(runners, settings.node)
    outcomes = {outcome.name: outcome for outcome in schedule.turn(clock(), monotonic())}
    while schedule.waiting:
        threading.Event().wait(0.005)
        outcomes |= {outcome.name: outcome for outcome in schedule.turn(clock(), monotonic())}
    close(runners, 1.0)
    return [outcomes[runner.name] for runner in runners]


def as_page(
    outcomes: Sequence[Outcome], node: str, now: datetime, foreign: Sequence[ForeignText] = (), entries: Sequence[Entry] = COLLECTORS
) -> str:
    """As Prometheus text; what is not here, and what failed, are comments."""
    readings = _told(outcomes, entries)
    notes = [f"# {outcome.name}: {said}\n" for outcome in outcomes if (said := _said(outcome))]
    return "".join(
        [prometheus_text(readings), *(text(readings) for text in foreign), prometheus_text(_of_itself(outcomes, node, now)), *notes]
    )


def as_json(outcomes: Sequence[Outcome], node: str, now: datetime, entries: Sequence[Entry] = COLLECTORS) -> str:
    """One object on one line: `devices` with their readings, each with its unit, `events`, and how the `collectors` did."""
    readings = [*_told(outcomes, entries), *_of_itself(outcomes, node, now)]
    return json.dumps(
        {
            "node": node,
            "at": now.isoformat(),
            "devices": [_device(reading) for reading in readings],
            "events": [event.attributes() | {"at": event.at.isoformat()} for outcome in outcomes for event in outcome.events],
            "collectors": [dict(_collector(outcome)) for outcome in outcomes],
        }
    )


def _told(outcomes: Sequence[Outcome], entries: Sequence[Entry]) -> list[Accepted]:
    """The readings, of each device from the collector that speaks for it."""
    natives = Natives(entries)
    for outcome in outcomes:
        natives.note(outcome.name, outcome.readings, math.inf)
    return [reading for outcome in outcomes for reading in natives.without(outcome.name, outcome.readings, 0.0)]


def _of_itself(outcomes: Sequence[Outcome], node: str, now: datetime) -> list[Accepted]:
    judge = Judge(node)
    for outcome in outcomes:
        judge.failed(outcome, now.timestamp())
    return accept(judge.readings(now.timestamp()))[0]


def _said(outcome: Outcome) -> str:
    if outcome.absent:
        return f"absent: {outcome.absent}"
    events = f"events, which --json tells: {len(outcome.events)}" if outcome.events else ""
    return "; ".join(filter(None, (outcome.error and f"error: {outcome.error}", events)))


def _device(reading: Accepted) -> Mapping[str, object]:
    own = len(reading.family.identity)
    found: dict[str, object] = {"family": reading.family.name, "device": dict(reading.labels[:own])}
    if reading.labels[own:]:
        found["attributes"] = dict(reading.labels[own:])
    return found | {"readings": {metric.name: {"value": value, "unit": metric.unit} for metric, value in reading.values}}


def _collector(outcome: Outcome) -> Iterator[tuple[str, object]]:
    yield "name", outcome.name
    given = outcome.readings or outcome.events or outcome.foreign
    yield "state", "absent" if outcome.absent else "failed" if outcome.error else "ok" if given else "nothing now"
    if said := outcome.absent or outcome.error:
        yield "why", said
    if outcome.source:
        yield "source", outcome.source
    yield "seconds", outcome.seconds
    yield "rejected", outcome.rejected
