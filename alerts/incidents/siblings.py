"""Faults of many nodes with one cause: of one run, or of what the nodes share, such as a switch. Pure.

Which findings belong together follows from the set of them alone, never from the order in which they came: a place counts as
hit from a number of nodes on, what is beneath one place belongs together, and more findings only ever join more.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from alerts.detectors import fault_rule, heartbeat_lost, node_left
from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import NEAR, incident_key, title
from alerts.incidents.lifecycle import State
from alerts.words import duration
from pipeline.catalog.faults import BY_NAME
from pipeline.records import FindingTransition, IncidentTransition
from pipeline.topology import Place, Topology

NODES, SHARE = 3, 0.05
"""Nodes that must have a fault within NEAR for it to be that of the place they are in, and their share of its nodes: with a fault
a node and week, three of the sixty nodes of a switch meet by chance less than once a year."""
PLACES, MOST = 2, 0.5
"""The same of places beneath a place: a switch with one sick switch beneath it is none."""
SOON = timedelta(seconds=2)  # a burst's events come within it: who is told waits for the rest of it
LATER = timedelta(seconds=15)  # the same where a sibling has the fault already: agents read every 10 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A finding of a node's own fault, as far as it matters here. `run` is the one that it is about, "" for the node's own."""

    key: str
    incident: str
    fault: str
    run: str
    attempt: str
    node: str
    device: str
    onset: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """Findings with one cause, on two nodes at least. `place` is what their nodes share, None where that is only the run."""

    members: tuple[Member, ...]
    place: Place | None = None

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(m.node for m in self.members)

    @property
    def incidents(self) -> frozenset[str]:
        return frozenset(m.incident for m in self.members)


def member(one: FindingTransition | Verdict, incident: IncidentTransition, at: datetime) -> Member | None:
    """What a finding of `incident` is here; None where it is not a node's own fault, or its incident is about something else."""
    fault = one.fault if isinstance(one.fault, str) else one.fault.name
    run = one.key.rpartition("|")[2]
    if one.detector not in (fault_rule.NAME, heartbeat_lost.NAME, node_left.NAME) or one.rank is not None or not one.node:
        return None
    early = incident.new_state in (State.OPEN, State.MITIGATING) and incident.recovered_at is None
    if not early or (incident.fault, incident.run, incident.rank) != (fault, run, None):
        return None
    return Member(
        key=one.key,
        incident=incident.incident,
        fault=fault,
        run=run,
        attempt=one.attempt,
        node=one.node,
        device=one.device,
        onset=min(one.onset or at, at),
    )


def kin(members: Iterable[Member], topology: Topology) -> list[Kin]:
    """Those of `members` that belong together. No incident is in two of them."""
    alike: dict[tuple[str, str, str], list[Member]] = {}
    for one in members:
        alike.setdefault((one.fault, one.run, one.attempt), []).append(one)
    found: list[Kin] = []
    for some in alike.values():
        for together in _at_one_time(some):
            found += _related(together, topology)
    return _apart(found)


def _apart(found: Iterable[Kin]) -> list[Kin]:
    """What is of one incident is one, though its findings came further apart: what comes and goes joins what it was with at each time."""
    apart: list[Kin] = []
    for one in found:
        touching = [other for other in apart if other.incidents & one.incidents]
        apart = [other for other in apart if other not in touching] + [_as_one([*touching, one])]
    return apart


def _as_one(some: Sequence[Kin]) -> Kin:
    members = tuple(dict.fromkeys(m for k in some for m in k.members))
    nodes = {m.node for m in members}
    return Kin(members=members, place=_smallest((k.place for k in some if k.place), nodes))


def _smallest(places: Iterable[Place], nodes: set[str]) -> Place | None:
    """The place that holds the most of `nodes`, of several the smallest."""
    return min((p for p in places if p.under & nodes), key=lambda p: (-len(p.under & nodes), *p.rank), default=None)


def _at_one_time(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Members with less than NEAR between each and the next."""
    ordered = sorted(members, key=lambda m: (m.onset, m.key))
    cuts = [n for n, (one, other) in enumerate(pairwise(ordered), start=1) if other.onset - one.onset > NEAR]
    for begin, end in pairwise([0, *cuts, len(ordered)]):
        yield ordered[begin:end]


def _related(members: Sequence[Member], topology: Topology) -> Iterator[Kin]:
    nodes = {m.node for m in members}
    if len(nodes) < 2:
        return
    hit = [topology.places[name] for name in _hit(nodes, topology)]
    sets = [nodes] if members[0].run else _joined([nodes & place.under for place in hit])
    for some in sets:
        yield Kin(members=tuple(m for m in members if m.node in some), place=_smallest(hit, some))


def _hit(nodes: set[str], topology: Topology) -> set[str]:
    """The places whose fault it is that `nodes` have. Those beneath a place come before it."""
    found: set[str] = set()
    concerned = {place for node in nodes for place in topology.above.get(node, ())}
    for name, place in topology.places.items():
        if name not in concerned:
            continue
        own, beneath = len(place.nodes & nodes), len(found.intersection(place.places))
        by_nodes = own >= NODES and own >= SHARE * len(place.nodes)
        if by_nodes or (beneath >= PLACES and beneath >= MOST * len(place.places)):
            found.add(name)
    return found


def _joined(sets: Iterable[set[str]]) -> list[set[str]]:
    """Sets that have something in common, made one."""
    apart: list[set[str]] = []
    for one in sets:
        touching = [other for other in apart if other & one]
        apart = [other for other in apart if not other & one] + [one.union(*touching)]
    return apart


def eldest(incidents: Iterable[IncidentTransition]) -> IncidentTransition:
    """The one that the others turn out to be."""
    return min(incidents, key=lambda i: (i.detected_at or i.at, i.onset or i.at, i.key, i.incident))


def about(incident: IncidentTransition, kin: Kin) -> dict[str, Any]:
    """The fields of an incident that is about all of `kin`. Of a run it keeps its node: what is done about it begins there."""
    fault, place = BY_NAME[incident.fault], kin.place
    name = "" if place is None else str(place)
    said = title(fault, incident.run, where(kin), None)
    if incident.run:
        return {"key": incident_key(fault, "", None, incident.run), "title": said}
    return {"key": incident_key(fault, name, None, ""), "title": said, "node": "", "device": name}


def where(kin: Kin) -> str:
    """`/data on 50 of 50 nodes under switch leaf-01`."""
    nodes = kin.nodes
    devices, spots = {m.device for m in kin.members}, {(m.node, m.device) for m in kin.members}
    on = f"{len(nodes)} nodes"
    if kin.place:
        inside = len(nodes & kin.place.under)
        rest = f" and {len(nodes) - inside} more" if len(nodes) > inside else ""
        on = f"{inside} of {len(kin.place.under)} nodes under {kin.place}{rest}"
    if len(devices) == 1:
        return " on ".join(filter(None, (*devices, on)))
    return f"{len(spots)} places on {on}"


def why(kin: Kin) -> str:
    """Why `kin` is one incident."""
    onsets = [m.onset for m in kin.members]
    return f"one cause: {where(kin)}, within {duration((max(onsets) - min(onsets)).total_seconds())}"


def waits(incident: IncidentTransition, others: Iterable[IncidentTransition], topology: Topology, now: datetime) -> bool:
    """Whether nobody is told of a node's own fault yet, as its siblings may be about to have it, too.

    Only where the file says whom it shares a place with; the first of them waits for a moment, the second a little longer.
    """
    began = incident.detected_at
    if incident.run or incident.new_state == State.RESOLVED or began is None or now - began >= LATER or not topology.of(incident.node):
        return False
    places = set(topology.above[incident.node])
    siblings = any(_sibling(incident, other, places, topology) for other in others)
    return now - began < (LATER if siblings else SOON)


def _sibling(incident: IncidentTransition, other: IncidentTransition, places: set[str], topology: Topology) -> bool:
    """Whether `other` had the fault of `incident` before, at about the same time and below the same place."""
    if other.incident == incident.incident or (other.fault, other.run) != (incident.fault, "") or eldest((incident, other)) is incident:
        return False
    near = other.onset is not None and incident.onset is not None and abs(other.onset - incident.onset) <= NEAR
    return near and not places.isdisjoint(topology.above.get(other.node, ()))
