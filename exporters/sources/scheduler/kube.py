"""Kubernetes' nodes, pods, events and claims, made small. Pure; what is malformed is absent. Source: the API reference of v1.

A GPU is counted under whatever resource its vendor's plug-in names so.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from pipeline.catalog.runs import unfit_node

_GPUS: Final = re.compile(r"(nvidia\.com/(gpu|mig-.*)|amd\.com/gpu|huawei\.com/Ascend.*|gpu\.intel\.com/.*)")
RUN_LABEL: Final = "surefoot.run"
RUN_VARIABLE: Final = "SUREFOOT_RUN_ID"
_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_RESTARTS: Final = "jobset.sigs.k8s.io/restart-attempt"
_LOST: Final = {
    "PreemptionByScheduler": "preempted",
    "EvictionByEvictionAPI": "evicted",
    "DeletionByTaintManager": "evicted",
    "TerminationByKubelet": "evicted",
    "DeletionByPodGC": "node_gone",
}
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)

Object = Mapping[str, Any]


def node(told: Object) -> Object:
    """What is kept of a node."""
    return {"metadata": _meta(told), "node": _node(told)}


def _node(told: Object) -> SchedNode | None:
    name = _text(_at(told, "metadata", "name"))
    if unfit_node(name):
        return None
    states = {_text(c.get("type")): c for c in _dicts(_at(told, "status", "conditions"))}
    ready = _text(states.get("Ready", {}).get("status"))
    bad = {
        kind: _text(one.get("reason"))
        for kind, one in states.items()
        if _text(one.get("status")) not in ("", "False" if kind != "Ready" else "True")
    }
    cordoned = bool(_at(told, "spec", "unschedulable"))
    return SchedNode(
        name.lower(),
        ready == "True" if ready else None,
        not cordoned and ready == "True" if ready else None,
        _gpus(_at(told, "status", "allocatable")),
        None,
        bad,
    )


def pod(told: Object) -> Object:
    """What is kept of a pod; `job` is None where it has no GPU and belongs to no run."""
    return {"metadata": _meta(told), "node": _text(_at(told, "spec", "nodeName")).lower(), "job": _pod(told)}


def _pod(told: Object) -> SchedJob | None:
    gpus = [_gpus(_at(one, "resources", "limits")) for one in _dicts(_at(told, "spec", "containers"))]
    count, run = sum(filter(None, gpus)), _run(told)
    if not count and not run:
        return None
    states = {_text(c.get("type")): c for c in _dicts(_at(told, "status", "conditions"))}
    phase = _text(_at(told, "status", "phase"))
    unplaced = states.get("PodScheduled", {}) if phase == "Pending" else {}
    stuck = _text(unplaced.get("status")) == "False" and _text(unplaced.get("reason")) == "Unschedulable"
    where = _text(_at(told, "spec", "nodeName")).lower()
    restarts = _text(_at(told, "metadata", "labels", _RESTARTS)) or _text(_at(told, "metadata", "annotations", _RESTARTS))
    return SchedJob(
        _text(_at(told, "metadata", "uid")),
        f"{_text(_at(told, 'metadata', 'namespace'))}/{_text(_at(told, 'metadata', 'name'))}",
        running=phase == "Running",
        unplaced_since=seconds(unplaced.get("lastTransitionTime")) if stuck else None,
        nodes=(where,) if where else (),
        gpus=count or None,
        starts=int(restarts) if _NUMBER.fullmatch(restarts) else None,
        run=run,
        lost=_lost(told, states),
        lost_at=seconds(states.get("DisruptionTarget", {}).get("lastTransitionTime")),
        reason=_text(states.get("DisruptionTarget", {}).get("message")) or _text(_at(told, "status", "message")),
    )


def _lost(told: Object, states: Mapping[str, Object]) -> str:
    target = states.get("DisruptionTarget", {})
    if _text(target.get("status")) == "True":
        return _LOST.get(_text(target.get("reason")), "evicted")
    return {"Evicted": "evicted", "Preempting": "preempted", "NodeLost": "node_gone"}.get(_text(_at(told, "status", "reason")), "")


def _run(told: Object) -> str:
    """The run that a pod says it belongs to: its label, else the variable that one of its containers is given."""
    said = [_text(_at(told, "metadata", "labels", RUN_LABEL))]
    for container in _dicts(_at(told, "spec", "containers")):
        said += [_text(one.get("value")) for one in _dicts(container.get("env")) if one.get("name") == RUN_VARIABLE]
    return next((run for run in said if _RUN.fullmatch(run)), "")


@dataclass(frozen=True, slots=True)
class Told:
    """One of Kubernetes' events: something that happened `count` times, the last time at `at` (seconds since 1970, None: not said)."""

    uid: str
    at: float | None
    count: int
    kind: str
    name: str  # namespace/name
    object_uid: str
    reason: str
    message: str


def event(told: Object) -> Object:
    """What is kept of an event, of the older form (count, lastTimestamp) and of the newer (series, eventTime)."""
    times = (_at(told, "series", "lastObservedTime"), told.get("lastTimestamp"), told.get("eventTime"), told.get("firstTimestamp"))
    counts = [one for one in (told.get("count"), _at(told, "series", "count")) if type(one) is int and 0 < one < 1 << 31]
    return {
        "metadata": _meta(told),
        "told": Told(
            uid=_text(_at(told, "metadata", "uid")),
            at=next((found for one in times if (found := seconds(one)) is not None), None),
            count=max(counts, default=1),
            kind=_text(_at(told, "involvedObject", "kind")),
            name=f"{_text(_at(told, 'involvedObject', 'namespace'))}/{_text(_at(told, 'involvedObject', 'name'))}",
            object_uid=_text(_at(told, "involvedObject", "uid")),
            reason=_text(told.get("reason")),
            message=_text(told.get("message"))[:1000],
        ),
    }


def seconds(told: Any) -> float | None:
    """A time of Kubernetes' (RFC 3339) as seconds since 1970, None where it is none."""
    try:
        at = datetime.fromisoformat(told)
        return at.timestamp() if at.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def _meta(told: Object) -> Object:
    return {key: _text(_at(told, "metadata", key)) for key in ("uid", "namespace", "name")}


def _at(told: Any, *path: str) -> Any:
    for key in path:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def _dicts(told: Any) -> Iterator[Object]:
    return (one for one in told if isinstance(one, dict)) if isinstance(told, list) else iter(())


def _text(told: Any) -> str:
    return told if isinstance(told, str) else ""


def _gpus(resources: Any) -> int | None:
    """How many GPUs, None where none is named."""
    if not isinstance(resources, dict):
        return None
    counts = [int(str(n)) for name, n in resources.items() if _GPUS.fullmatch(str(name)) and _NUMBER.fullmatch(str(n))]
    return sum(counts) if counts else None
