"""Findings with one cause are one incident: which open incident a verdict belongs to, and what it changes there."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from alerts.detectors import rank_exit
from alerts.detectors.verdict import Verdict
from alerts.incidents.lifecycle import State, open_incident
from alerts.transitions import LEADER
from pipeline.catalog.faults import (
    BY_NAME,
    HOST_DOWN,
    LAUNCHER_LOST,
    NODE_LEFT,
    RANK_CRASH,
    RANK_STOPPED,
    RESTART_LOOP,
    STARTUP_FAILURE,
    TELEMETRY_LOST,
    Fault,
)
from pipeline.catalog.layers import gravity
from pipeline.catalog.rules import rules_of
from pipeline.records import FindingTransition, IncidentTransition

KILLED = timedelta(seconds=15)  # a rank that died this close to a kill for want of memory on its node, or to a peer's host, died of it
NEAR = timedelta(minutes=5)  # a node's own fault further from an incident's onset has nothing to do with it


def incident_key(fault: Fault, node: str, rank: int | None, run: str, device: str = "") -> str:
    """Cause + entity + run, without measured values."""
    entity = f"{node}/rank {rank}" if rank is not None else f"{node}/{device}" if device else node
    return f"{fault.name}|{entity}|{run}"


def home(verdict: Verdict, incidents: Iterable[IncidentTransition]) -> IncidentTransition | None:
    """The open incident that `verdict` belongs to, or None: it is the first of a new one.

    One with the same key, or one about the same device that is as grave; or, of faults that stop a run, one about the same attempt, or
    one whose next attempt failed before it recovered. Lost telemetry and a host that is down are the same silence. A node's own fault
    joins what befell a run there at about the same time.
    """
    key = incident_key(verdict.fault, verdict.node, verdict.rank, verdict.run, verdict.device)
    unresolved = [i for i in incidents if i.new_state != State.RESOLVED]
    same_key = (i for i in unresolved if i.key == key)
    same_device = (i for i in unresolved if i.run == verdict.run and _same_device(verdict, i))
    related = (i for i in unresolved if i.run == verdict.run and _related(verdict, i))
    beside = (i for i in unresolved if i.run in verdict.beside and _beside(verdict, i))
    return next(chain(same_key, same_device, related, beside), None)


def _same_device(verdict: Verdict, incident: IncidentTransition) -> bool:
    """Whether the incident is about the same device in the same layer: a cable that is down, flaps and is slow is one cable.

    What is graver than the incident is one of its own: whoever was told of the lesser one must be told anew. What is as grave has the
    same cause if it began at about the same time.
    """
    if not verdict.device or (incident.node, incident.device, incident.layer) != (verdict.node, verdict.device, verdict.fault.layer):
        return False
    lesser = gravity(verdict.fault.severity) - gravity(BY_NAME[incident.fault].severity)
    return lesser > 0 or (lesser == 0 and incident.onset is not None and abs(verdict.onset - incident.onset) <= NEAR)


def absorbs(graver: IncidentTransition, other: IncidentTransition) -> bool:
    """Whether `other`, of the same device, is part of what turned out to be graver. A failure of a run is never a part of anything."""
    if State.RESOLVED in (graver.new_state, other.new_state) or other.attempt or not (other.node and other.device):
        return False
    same = all(getattr(graver, name) == getattr(other, name) for name in ("node", "device", "layer", "run"))
    return same and gravity(graver.severity) < gravity(other.severity)


def _beside(verdict: Verdict, incident: IncidentTransition) -> bool:
    failed = incident.fault in (RANK_CRASH.name, STARTUP_FAILURE.name)
    if failed and incident.run in verdict.evidence.get("spared", ()):
        return False  # a kill for want of memory that was none of the run's: where it is why after all, `causes.py` finds it
    near = incident.onset is not None and abs(verdict.onset - incident.onset) <= NEAR
    return near and incident.recovered_at is None and incident.node in ("", verdict.node) and incident.fault != TELEMETRY_LOST.name


def _related(verdict: Verdict, incident: IncidentTransition) -> bool:
    silence = {TELEMETRY_LOST.name, HOST_DOWN.name}
    if verdict.fault.name in silence and incident.fault in silence:
        return verdict.node == incident.node
    if verdict.fault is TELEMETRY_LOST or incident.fault == TELEMETRY_LOST.name:
        return False
    attempts = {incident.attempt} if incident.recovered_at else {incident.attempt, incident.next_attempt}
    return verdict.attempt in attempts - {""}


def first_transition(verdict: Verdict, incident: str, now: datetime) -> IncidentTransition:
    """The opening of `incident` by its first finding."""
    return open_incident(
        IncidentTransition(
            old_state="",
            new_state=State.OPEN,
            reason=verdict.reason,
            actor=LEADER,
            at=now,
            incident=incident,
            key=incident_key(verdict.fault, verdict.node, verdict.rank, verdict.run, verdict.device),
            fault=verdict.fault.name,
            layer=verdict.fault.layer,
            severity=verdict.fault.severity,
            title=title(verdict.fault, verdict.run, verdict.node, verdict.rank, verdict.device),
            run=verdict.run,
            attempt=verdict.attempt,
            node=verdict.node,
            device=verdict.device,
            rank=verdict.rank,
            confidence=verdict.confidence,
            onset=min(verdict.onset, now),
            detected_at=now,
            located_at=now if is_located(verdict) else None,
        )
    )


def title(fault: Fault, run: str, node: str, rank: int | None, device: str = "") -> str:
    """What a person reads first: what, where, which run."""
    where = " on ".join(part for part in (f"rank {rank}" if rank is not None else device, node) if part)
    return f"{fault.summary}: " + ", ".join(part for part in (where, f"run {run}" if run else "") if part)


def is_located(verdict: Verdict) -> bool:
    """Whether the verdict names the one place: a rank, or for a silent node the node."""
    return (
        verdict.located
        or verdict.rank is not None
        or (verdict.fault in (HOST_DOWN, TELEMETRY_LOST, LAUNCHER_LOST, NODE_LEFT) and verdict.node != "")
    )


def refinement(incident: IncidentTransition, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """What `verdict` puts right in its incident: the place found later, or a cause that outranks the first. {} for nothing.

    Once an action is on its way the ranks are being stopped by us, so of a stall only a stopped rank is believed then.

    It comes to rest whatever is seen how often: how deep a cause lies never falls, and among causes that lie equally deep neither
    does the confidence.
    """
    same = (incident.fault, incident.node, incident.rank) == (verdict.fault.name, verdict.node, verdict.rank)
    deeper = depth(verdict.fault) - depth(BY_NAME[incident.fault])
    if same or deeper < 0 or incident.new_state == State.RECOVERING or incident.attempt != verdict.attempt:
        return {}
    surer = verdict.confidence > incident.confidence and is_located(verdict)
    surer = surer and (incident.new_state == State.OPEN or verdict.fault is RANK_STOPPED)
    if not (surer or (_outranks(incident, verdict) if deeper else _first(incident, verdict))):
        return {}
    confidence = verdict.confidence if deeper else max(incident.confidence, verdict.confidence)
    changes: dict[str, Any] = rerooted(incident, verdict.fault, verdict.node, verdict.rank, confidence)
    if incident.located_at is None and is_located(verdict):
        changes["located_at"] = now
    return changes


def depth(fault: Fault) -> int:
    """How deep a cause lies: what explains other failures lies deeper than they, and is not explained by them."""
    if fault in (RESTART_LOOP, HOST_DOWN, NODE_LEFT, TELEMETRY_LOST):
        return {RESTART_LOOP: 5, HOST_DOWN: 4, NODE_LEFT: 3, TELEMETRY_LOST: 0}[fault]
    return 2 if rules_of(fault) else 1  # what a rule shows is explicit


def _outranks(incident: IncidentTransition, verdict: Verdict) -> bool:
    """Whether a node that is gone explains a fault of its run: its ranks are gone, too, and the others wait for them or died of it."""
    near = incident.onset is not None and abs(verdict.onset - incident.onset) <= KILLED
    if verdict.fault is HOST_DOWN:
        return near or incident.fault == TELEMETRY_LOST.name
    elsewhere = incident.node != verdict.node or incident.fault == LAUNCHER_LOST.name
    return verdict.fault is NODE_LEFT and elsewhere and near


def _first(incident: IncidentTransition, verdict: Verdict) -> bool:
    """Whether the end of a rank came before what its incident is about, which came of it."""
    ended = verdict.detector == rank_exit.NAME and verdict.rank is not None and incident.new_state in (State.OPEN, State.MITIGATING)
    return ended and BY_NAME[incident.fault].layer == verdict.fault.layer and incident.onset is not None and verdict.onset <= incident.onset


def rerooted(
    incident: IncidentTransition, fault: Fault, node: str, rank: int | None, confidence: float, device: str = ""
) -> dict[str, Any]:
    """The fields of an incident whose cause turns out to be another; its id stays."""
    return {
        "key": incident_key(fault, node, rank, incident.run, device),
        "fault": fault.name,
        "layer": fault.layer,
        "severity": fault.severity,
        "title": title(fault, incident.run, node, rank, device),
        "node": node,
        "device": device,
        "rank": rank,
        "confidence": confidence,
    }


def first_finding(verdict: Verdict, finding: str, incident: str, now: datetime, evidence: str) -> FindingTransition:
    """The opening of a finding by its verdict."""
    return FindingTransition(
        old_state="",
        new_state="open",
        reason=verdict.reason,
        actor=verdict.detector,
        at=now,
        finding=finding,
        key=verdict.key,
        detector=verdict.detector,
        fault=verdict.fault.name,
        layer=verdict.fault.layer,
        severity=verdict.fault.severity,
        run=verdict.run,
        attempt=verdict.attempt,
        node=verdict.node,
        device=verdict.device,
        rank=verdict.rank,
        onset=min(verdict.onset, now),
        evidence=evidence,
        confidence=verdict.confidence,
        incident=incident,
    )
