"""What a person asked to leave undone for a while: silences, maintenance windows, the pause of all acting. Pure.

A matcher is what a hold is about: `node=node-7`, `run=r,rank=3`, `fault=rank_crash`. All its parts must agree with
the incident. A hold holds from its start to its end as its row names them, whenever the leader gets round to
closing it; so what was held back follows from the rows alone, also after a kill -9.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.layers import Layer, Severity
from pipeline.errors import InputError
from pipeline.hold_records import HoldTransition, MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.records import IncidentTransition
from pipeline.wording import nearest

SILENCE, END_SILENCE = "silence", "end_silence"
MAINTAIN, END_MAINTENANCE = "maintain", "end_maintenance"
PAUSE, RESUME = "pause_actions", "resume_actions"
ASKS = frozenset({SILENCE, END_SILENCE, MAINTAIN, END_MAINTENANCE, PAUSE, RESUME})
"""The kinds of requests about holds."""

KEYS = ("node", "device", "run", "rank", "fault", "layer", "severity")
_WORDS: Mapping[str, Collection[str]] = {"fault": FAULTS, "layer": [*map(str, Layer)], "severity": [*map(str, Severity)]}  # all there are
ENDED = "ended"
Labels = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Held:
    """Something is held back: by which hold, and the reason in words."""

    hold: str
    reason: str


def parse(matcher: str) -> dict[str, str]:
    """The parts of a matcher. Raises InputError, one line that says what to write, for anything that is none."""
    parts: dict[str, str] = {}
    for part in matcher.split(","):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or not value:
            raise InputError(f"{part.strip()!r} is no part of a matcher; write KEY=VALUE[,KEY=VALUE], for example node=node-7")
        if key not in KEYS:
            raise InputError(f"unknown key {key!r} in a matcher; known are {', '.join(KEYS)}")
        if value not in _WORDS.get(key, {value}):
            raise InputError(f"there is no {key} {value!r}{nearest(value, _WORDS[key])}")
        if key in parts:
            raise InputError(f"{key} stands twice in {matcher!r}, and one incident has only one")
        parts[key] = value.lower() if key == "node" else value
    if "rank" in parts and not (parts["rank"].isdecimal() and parts.keys() & {"run", "node"}):
        raise InputError("rank must be a number, together with the run or node whose rank it is: run=r,rank=3")
    return parts


def canonical(matcher: str) -> str:
    """A matcher with its parts in one order and spelling. Raises InputError."""
    parts = parse(matcher)
    return ",".join(f"{key}={parts[key]}" for key in KEYS if key in parts)


def labels_of(incident: IncidentTransition, nodes: Iterable[str] = ()) -> Labels:
    """What a matcher is compared with; `nodes` are further nodes that are concerned."""
    single = {
        "device": incident.device,
        "run": incident.run,
        "rank": "" if incident.rank is None else str(incident.rank),
        "fault": incident.fault,
        "layer": incident.layer,
        "severity": incident.severity,
    }
    return {key: frozenset({value}) for key, value in single.items()} | {"node": frozenset({incident.node, *nodes}) - {""}}


def agrees(matcher: str, labels: Labels) -> bool:
    """Whether every part of `matcher` names one of the labels; a matcher that cannot be read agrees with nothing."""
    try:
        return all(value in labels.get(key, ()) for key, value in parse(matcher).items())
    except InputError:
        return False


def over(hold: HoldTransition, now: datetime) -> str | None:
    """Why a hold that nobody has closed yet is over; None while it is not."""
    if hold.new_state != ENDED and hold.ends_at and now >= hold.ends_at:
        return f"its time was over at {_clock(hold.ends_at)}"
    return None


def quiet(incident: IncidentTransition, held: Iterable[HoldTransition], now: datetime, nodes: Sequence[str] = ()) -> Held | None:
    """What keeps the trigger of an incident back that was not sent yet; None where it is to be sent.

    An open incident is judged by what holds now, so it pages when its silence ends. A resolved one is judged by what
    held when it was resolved: what opened and closed inside a silence never pages. One about several `nodes` is kept back
    where each of them is.
    """
    at, holds = incident.resolved_at or now, list(held)
    found = [_quiet(labels_of(incident, (node,)), holds, at) for node in nodes] or [_quiet(labels_of(incident), holds, at)]
    return found[0] if all(found) else None


def _quiet(labels: Labels, held: Iterable[HoldTransition], at: datetime) -> Held | None:
    for hold in held:
        if isinstance(hold, SilenceTransition | MaintenanceTransition) and hold.holds(at) and agrees(hold.matcher, labels):
            return Held(hold.hold, described(hold))
    return None


def withheld(held: Iterable[HoldTransition], now: datetime, incident: IncidentTransition | None, nodes: Iterable[str]) -> Held | None:
    """What keeps Surefoot from acting on `nodes` because of `incident` (None: a person asked); None where it may act.

    A pause holds for everything, also for what a person asks; a maintenance window for what it is about. Of several the one that holds
    longest is named.
    """
    labels = labels_of(incident, nodes) if incident else None
    for hold in sorted(held, key=_ends, reverse=True):
        if not hold.holds(now):
            continue
        mine = isinstance(hold, MaintenanceTransition) and labels is not None and agrees(hold.matcher, labels)
        if mine or isinstance(hold, PauseTransition):
            return Held(hold.hold, described(hold))
    return None


def paused(held: Iterable[HoldTransition], now: datetime) -> str:
    """Why no action is issued at all, and of several pauses until when the longest lasts; "" while acting is not paused."""
    there = [hold for hold in held if isinstance(hold, PauseTransition) and hold.holds(now)]
    return described(max(there, key=_ends)) if there else ""


def _ends(hold: HoldTransition) -> datetime:
    return hold.ends_at or datetime.max.replace(tzinfo=UTC)


def described(hold: HoldTransition) -> str:
    """A hold in one sentence: `silenced until 14:30 UTC by ann: rack move`."""
    until = f" until {_clock(hold.ends_at)}" if hold.ends_at else ""
    what = {
        SilenceTransition: f"{hold.matcher} is silenced",
        MaintenanceTransition: f"{hold.matcher} is in maintenance",
        PauseTransition: "acting is paused",
    }.get(type(hold), "held")
    return f"{what}{until} by {hold.owner}" + (f": {hold.reason}" if hold.reason and hold.new_state != ENDED else "")


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
