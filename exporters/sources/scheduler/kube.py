"""Kubernetes' nodes, pods, events and claims, made small. Pure; what is malformed is absent. Source: the API reference of v1.

A GPU is counted under whatever resource its vendor's plug-in names so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from exporters.sources.scheduler.kube_csi import csi_pod
from exporters.sources.scheduler.kube_objects import Object, at, dicts, meta, text
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


def node(told: Object) -> Object:
    """What is kept of a node."""
    return {"metadata": meta(told), "node": _node(told)}


def _node(told: Object) -> SchedNode | None:
    name = text(at(told, "metadata", "name"))
    if unfit_node(name):
        return None
    states = {text(c.get("type")): c for c in dicts(at(told, "status", "conditions"))}
    ready = text(states.get("Ready", {}).get("status"))
    bad = {
        kind: text(one.get("reason"))
        for kind, one in states.items()
        if text(one.get("status")) not in ("", "False" if kind != "Ready" else "True")
    }
    cordoned = bool(at(told, "spec", "unschedulable"))
    return SchedNode(
        name.lower(),
        ready == "True" if ready else None,
        not cordoned and ready == "True" if ready else None,
        _gpus(at(told, "status", "allocatable")),
        None,
        bad,
    )


def pod(told: Object) -> Object:
    """What is kept of a pod; `job` is None where it has no GPU and belongs to no run, `csi` where it is no driver's."""
    return {"metadata": meta(told), "node": text(at(told, "spec", "nodeName")).lower(), "job": _pod(told), "csi": csi_pod(told)}


def _pod(told: Object) -> SchedJob | None:
    gpus = [_gpus(at(one, "resources", "limits")) for one in dicts(at(told, "spec", "containers"))]
    count, run = sum(filter(None, gpus)), _run(told)
    if not count and not run:
        return None
    states = {text(c.get("type")): c for c in dicts(at(told, "status", "conditions"))}
    phase = text(at(told, "status", "phase"))
    unplaced = states.get("PodScheduled", {}) if phase == "Pending" else {}
    stuck = text(unplaced.get("status")) == "False" and text(unplaced.get("reason")) == "Unschedulable"
    where = text(at(told, "spec", "nodeName")).lower()
    restarts = text(at(told, "metadata", "labels", _RESTARTS)) or text(at(told, "metadata", "annotations", _RESTARTS))
    return SchedJob(
        text(at(told, "metadata", "uid")),
        f"{text(at(told, 'metadata', 'namespace'))}/{text(at(told, 'metadata', 'name'))}",
        running=phase == "Running",
        unplaced_since=seconds(unplaced.get("lastTransitionTime")) if stuck else None,
        nodes=(where,) if where else (),
        gpus=count or None,
        starts=int(restarts) if _NUMBER.fullmatch(restarts) else None,
        run=run,
        lost=_lost(told, states),
        lost_at=seconds(states.get("DisruptionTarget", {}).get("lastTransitionTime")),
        reason=text(states.get("DisruptionTarget", {}).get("message")) or text(at(told, "status", "message")),
    )


def _lost(told: Object, states: Mapping[str, Object]) -> str:
    target = states.get("DisruptionTarget", {})
    if text(target.get("status")) == "True":
        return _LOST.get(text(target.get("reason")), "evicted")
    return {"Evicted": "evicted", "Preempting": "preempted", "NodeLost": "node_gone"}.get(text(at(told, "status", "reason")), "")


def _run(told: Object) -> str:
    """The run that a pod says it belongs to: its label, else the variable that one of its containers is given."""
    said = [text(at(told, "metadata", "labels", RUN_LABEL))]
    for container in dicts(at(told, "spec", "containers")):
        said += [text(one.get("value")) for one in dicts(container.get("env")) if one.get("name") == RUN_VARIABLE]
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
    times = (at(told, "series", "lastObservedTime"), told.get("lastTimestamp"), told.get("eventTime"), told.get("firstTimestamp"))
    counts = [one for one in (told.get("count"), at(told, "series", "count")) if type(one) is int and 0 < one < 1 << 31]
    return {
        "metadata": meta(told),
        "told": Told(
            uid=text(at(told, "metadata", "uid")),
            at=next((found for one in times if (found := seconds(one)) is not None), None),
            count=max(counts, default=1),
            kind=text(at(told, "involvedObject", "kind")),
            name=f"{text(at(told, 'involvedObject', 'namespace'))}/{text(at(told, 'involvedObject', 'name'))}",
            object_uid=text(at(told, "involvedObject", "uid")),
            reason=text(told.get("reason")),
            message=text(told.get("message"))[:1000],
        ),
    }


def seconds(told: Any) -> float | None:
    """A time of Kubernetes' (RFC 3339) as seconds since 1970, None where it is none."""
    try:
        found = datetime.fromisoformat(told)
        return found.timestamp() if found.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def _gpus(resources: Any) -> int | None:
    """How many GPUs, None where none is named."""
    if not isinstance(resources, dict):
        return None
    counts = [int(str(n)) for name, n in resources.items() if _GPUS.fullmatch(str(name)) and _NUMBER.fullmatch(str(n))]
    return sum(counts) if counts else None
