"""fault_rule: explicit faults, each shown by rows of a table (pipeline/catalog/rules/). What rules have seen is in the snapshot.

A fault of a node is the node's own: it bears no run, but may join the incident of a run that has ranks there. Only a rule about
the checkpoints of a run names that run.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from alerts.detectors.amounts import said_with
from alerts.detectors.verdict import Verdict, key_of
from alerts.snapshot import RunLook, Snapshot
from alerts.watched import STALE, Observation, Standing
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.faults import HOST_OOM_KILL
from pipeline.catalog.rules import RANK, Happened, Missing, Rule, Scope, rules_of
from pipeline.records import FindingTransition

NAME = "fault_rule"
NAMED = 30.0  # seconds: a count is read at most so much later than the kernel's log names who was killed
DYING = 1.0  # seconds: a killed rank gives back its memory before its end is seen; it is the run's incident then, and the kill joins it


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each fault and place that a rule has raised, once, whichever rules did."""
    there = runs_by_node(snapshot)
    found: dict[str, Verdict] = {}
    for standing in snapshot.watched.raised:
        if _left(standing, snapshot) or _rank_may_die(standing, there.get(standing.place.node, {}).values(), snapshot, now):
            continue
        if standing.bad.last is None or (now - standing.bad.last).total_seconds() <= STALE:
            for run in _runs_hit(standing, snapshot, there):
                verdict = _verdict(standing, run, there, snapshot)
                found.setdefault(verdict.key, verdict)
    hit = {_without_run(v.key) for v in found.values() if v.run}
    return [v for v in found.values() if v.run or _without_run(v.key) not in hit]


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why a fault is over: every rule that saw anything of it says so, or what it was about is no longer there. None: not known."""
    fault = FAULTS.get(finding.fault)
    rules = [rule for rule in (rules_of(fault) if fault else ()) if rule.names_run == bool(_run_of(finding))]
    if name := _run_of(finding):
        run = snapshot.run(name)
        if run is not None and run.state != "started":
            return "the run ended"
    if rules and all(rule.scope is Scope.RUN for rule in rules) and finding.node not in runs_by_node(snapshot):
        return "no run is there any more"
    place = _without_run(finding.key).partition("|")[2]
    mine = [s for s in snapshot.watched.standings.get((finding.fault, place), ()) if s.rule.names_run == bool(_run_of(finding))]
    there = [s for s in mine if not _left(s, snapshot)]
    if not there:
        return "it is no longer there" if _all_told(snapshot, [rule for rule in rules if _about(rule, place)], finding.node) else None
    known = [s for s in there if s.known]
    if not known or not all(s.over for s in known):
        return None
    last = max(known, key=lambda s: s.seen_at)
    return said_with(last.rule.cleared, last, last.last)


def _left(standing: Standing, snapshot: Snapshot) -> bool:
    """Whether what a rule was about is no longer there, and that is none of its business."""
    return not isinstance(standing.rule.when, Missing) and snapshot.watched.gone(standing)


def runs_by_node(snapshot: Snapshot) -> dict[str, dict[str, RunLook]]:
    """The runs in progress on each node."""
    found: dict[str, dict[str, RunLook]] = {}
    for run, attempt in snapshot.active():
        nodes = {run.node, *attempt.members} - {""}
        nodes |= {one.node for one in snapshot.launchers if one.run == run.run}
        nodes |= {one.node for one in snapshot.ranks if one.run == run.run}
        for node in nodes:
            found.setdefault(node, {})[run.run] = run
    return found


def _runs_hit(standing: Standing, snapshot: Snapshot, there: Mapping[str, Mapping[str, RunLook]]) -> Iterable[str]:
    """The runs that a raised rule is about: "" for the node's own fault, nothing where the rule does not apply now."""
    node, rule = standing.place.node, standing.rule
    if rule.entity == RANK:
        return (standing.place.labels.get("run", ""),)
    if rule.scope is Scope.ANYWHERE:
        return ("",)
    if rule.scope is Scope.RUN:
        return ("",) if node in there else ()
    return _runs_under(standing, there, snapshot.watched.mounts.get(node, frozenset()))


def _runs_under(standing: Standing, there: Mapping[str, Mapping[str, RunLook]], points: Iterable[str]) -> list[str]:
    """The runs whose checkpoints lie on the mount of `standing`."""
    if not standing.place.value:
        return []
    runs = there.get(standing.place.node, {})
    return [name for name, run in runs.items() if _mount_of(run.checkpoints, points) == standing.place.value]


def _rank_may_die(standing: Standing, runs: Iterable[RunLook], snapshot: Snapshot, now: datetime) -> bool:
    """Whether what the kernel has just killed may have been a rank there whose end nobody has told of yet."""
    if standing.rule.fault is not HOST_OOM_KILL or standing.onset is None or (now - standing.onset).total_seconds() >= DYING:
        return False
    return any(run.current and not snapshot.exits_of(run.current.attempt) for run in runs)


def _mount_of(path: str, points: Iterable[str]) -> str | None:
    """The mount point, of those that a node has or lately had, that `path` lies on."""
    above = [point for point in points if path and (path == point or path.startswith(point.rstrip("/") + "/"))]
    return max(above, key=len, default=None)


def _verdict(standing: Standing, run: str, there: Mapping[str, Mapping[str, RunLook]], snapshot: Snapshot) -> Verdict:
    place, fault = standing.place, standing.rule.fault
    points = snapshot.watched.mounts.get(place.node, frozenset())
    began = standing.onset or standing.seen_at
    rank = place.labels.get(RANK, "") if standing.rule.entity == RANK else ""
    return Verdict(
        key=key_of(f"{NAME}/{fault.name}", place.key, run),
        detector=NAME,
        fault=fault,
        run=run,
        attempt=place.labels.get("attempt", "") if rank else "",
        node=place.node,
        device="" if rank else place.value,
        rank=int(rank) if rank.isdigit() else None,
        onset=began,
        reason=said_with(standing.rule.says, standing, standing.seen[-1] if standing.seen else None),
        evidence=_evidence(standing, there.get(place.node, {}).values()) | _spared(standing, snapshot),
        beside=frozenset(there.get(place.node, ())),
        under=frozenset(_runs_under(standing, there, points)),
        located=True,
        happened=standing.bad.last if isinstance(standing.rule.when, Happened) else None,
    )


def _evidence(standing: Standing, runs: Iterable[RunLook]) -> dict[str, Any]:
    labels = {k: v for k, v in standing.place.labels.items() if v and k not in ("node", "message")}
    told: dict[str, Any] = {"seen": _shown(standing.seen), "place": {"node": standing.place.node, **labels}}
    if standing.before:
        told["before"] = _shown([standing.before])[0]
    if names := sorted(run.run for run in runs):
        told["runs_on_node"] = names
    return told


def _spared(standing: Standing, snapshot: Snapshot) -> dict[str, Any]:
    """The runs of which nothing was killed, though something on the node was, whichever rule has seen it."""
    began = standing.onset or standing.seen_at
    alike = snapshot.watched.standings.get((standing.rule.fault.name, standing.place.key), ())
    told = [values for one in alike for at, values in one.seen if abs((at - began).total_seconds()) <= NAMED]
    known = {run for values in told for run in str(values.get("known_runs", "")).split(",")}
    spared = sorted(known - {values.get("run", "") for values in told} - {""})
    return {"spared": spared} if spared else {}


def _shown(seen: Sequence[Observation]) -> list[dict[str, Any]]:
    return [{"at": at.isoformat(), **values} for at, values in seen]


def _run_of(finding: FindingTransition) -> str:
    """The run that the finding's key names: that of the finding itself may be of the incident that it joined."""
    return finding.key.rpartition("|")[2]


def _without_run(key: str) -> str:
    return key.rpartition("|")[0]


def _about(rule: Rule, place: str) -> bool:
    """Whether `place`, the key of one, is of the kind that the rule names."""
    return place.partition("/")[2].startswith(f"{rule.entity}:") if rule.entity else "/" not in place


def _all_told(snapshot: Snapshot, rules: Sequence[Rule], node: str) -> bool:
    """Whether the node has told enough for what it does not tell of to be gone; what is missing comes back or stays missing.

    A family of which the node has nothing at all (no NVLink between its GPUs) is not waited for, where it tells of another; but one that a
    collector of its agent reads is: while that one fails, nothing is known.
    """
    watched = snapshot.watched
    of_devices = [rule for rule in rules if not isinstance(rule.when, Happened)] or rules
    reads = watched.collectors.get(node, frozenset())
    heard = [rule for rule in of_devices if (rule.family.name, node) in watched.passes or rule.family.name in reads]
    told = bool(heard) and all(watched.told(rule.family.name, node) for rule in heard)
    return told and not any(isinstance(rule.when, Missing) for rule in rules)
