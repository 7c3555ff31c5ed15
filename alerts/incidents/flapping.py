"""What comes and goes is one incident with a count: how often it came, and for how long an incident stays open to see. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from alerts.words import duration
from pipeline.catalog.rules import acts
from pipeline.records import FindingTransition, IncidentTransition

PATIENCE = 10
"""What has come back before may stay away for longer before its incident resolves: so many times the settle time."""


def settles(incident: IncidentTransition) -> bool:
    """Whether an incident stays open for a while after its last finding went: not one that stops a run, which has its recovery."""
    return not incident.run or not acts(incident.fault, incident.attempt)


def came(findings: Iterable[FindingTransition]) -> tuple[int, timedelta]:
    """How often the finding that came most often came, and the time from its first coming to its last."""
    times: dict[str, list[datetime]] = {}
    for one in findings:
        times.setdefault(one.key, []).append(one.onset or one.at)
    most = max(times.values(), key=lambda one: (len(one), max(one) - min(one)), default=[])
    return len(most), max(most) - min(most) if most else timedelta()


def settled_at(past: Iterable[FindingTransition], settle: float) -> tuple[datetime, datetime] | None:
    """When the last of an incident's findings went, and when it may resolve; None where none went."""
    gone = list(past)
    if not gone:
        return None
    last = max(one.at for one in gone)
    times, _ = came(gone)
    return last, last + timedelta(seconds=settle * (PATIENCE if times > 1 else 1))


def counted(findings: Iterable[FindingTransition]) -> str:
    """The count of what came more than once: `3rd time in 6 min 10 s`; "" where nothing did."""
    times, span = came(findings)
    return f"{_ordinal(times)} time in {duration(span.total_seconds())}" if times > 1 else ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
