"""Kubernetes' drivers of volumes (CSI) by node, and volumes that nobody has any more. Pure; what is malformed is absent.

A node's drivers stand in its CSINode (storage.k8s.io/v1). A driver's pod is known by its sidecar, which is told the driver's socket:
`--kubelet-registration-path=/var/lib/kubelet/plugins/DRIVER/csi.sock`, or `=$(NAME)` of a variable that says so. Its version is the tag of
the first image beside those of the sidecars, which Kubernetes itself publishes, and others under the same names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from exporters.sources.scheduler.kube_objects import Object, at, dicts, meta, text
from pipeline.catalog.runs import unfit_node

_SOCKET: Final = re.compile(r"--kubelet-registration-path[= ]\S*/([^/\s]{1,200})/[^/\s]+")
_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][\w.-]{0,200})\)")
_SIDECARS: Final = re.compile(r"(^|/)((sig-storage|k8scsi)/|((csi-)?(node-)?driver-registrar|livenessprobe)([:@]|$))")
_TAG: Final = re.compile(r"^[^@]*:(\w[\w.-]{0,127})(@|$)", re.ASCII)
_ORPHANED: Final = ("Released", "Failed")
_BINARY: Final = {f"{unit}i": 1 << 10 * n for n, unit in enumerate("KMGTPE", 1)}
_UNITS: Final = {"": 1, **_BINARY, **{unit: 1000**n for n, unit in enumerate("kMGTPE", 1)}}
_SIZE: Final = re.compile(rf"(\d{{1,18}})({'|'.join(_UNITS)})", re.ASCII)


@dataclass(frozen=True, slots=True)
class CsiPod:
    """The pod of a driver on its node: whether all its containers are ready, how often they were begun again, the driver's version."""

    driver: str
    node: str
    ready: bool
    restarts: int
    version: str


@dataclass(frozen=True, slots=True)
class Orphan:
    """A persistent volume whose claim is gone (`Released`), or that could not be reclaimed (`Failed`); `claim` is what it was for."""

    name: str
    phase: str
    claim: str
    size: int | None


def csi_node(told: Object) -> Object:
    """What is kept of a CSINode: its node and drivers, with how many volumes each may have there (None: not said)."""
    drivers = {text(one.get("name")): _count(at(one, "allocatable", "count")) for one in dicts(at(told, "spec", "drivers"))}
    node = text(at(told, "metadata", "name")).lower()
    named = None if unfit_node(node) else {"node": node, "drivers": {name: count for name, count in drivers.items() if name}}
    return {"metadata": meta(told), "named": named}


def csi_pod(told: Object) -> CsiPod | None:
    """A driver's pod; None of any other."""
    containers = [*dicts(at(told, "spec", "containers"))]
    found = _SOCKET.search(" ".join(word for one in containers for word in _words(one)))
    node = text(at(told, "spec", "nodeName")).lower()
    if not found or not node:
        return None
    states = [*dicts(at(told, "status", "containerStatuses"))]
    images = [text(one.get("image")) for one in containers]
    tags = [tag[1] for image in images if not _SIDECARS.search(image) and (tag := _TAG.search(image))]
    return CsiPod(
        found[1],
        node,
        bool(states) and all(one.get("ready") is True for one in states),
        sum(_count(one.get("restartCount")) or 0 for one in states),
        tags[0] if tags else "",
    )


def volume(told: Object) -> Object:
    """What is kept of a persistent volume; `orphan` is None where it is in use or free to be used."""
    return {"metadata": meta(told), "orphan": _orphan(told)}


def _orphan(told: Object) -> Orphan | None:
    phase, name = text(at(told, "status", "phase")), text(at(told, "metadata", "name"))
    if phase not in _ORPHANED or not name:
        return None
    claim = [text(at(told, "spec", "claimRef", key)) for key in ("namespace", "name")]
    return Orphan(name, phase, "/".join(claim) if all(claim) else "", size(at(told, "spec", "capacity", "storage")))


def size(quantity: Any) -> int | None:
    """Bytes of a quantity as Kubernetes writes them ("10Gi"), None where it is no whole one."""
    found = _SIZE.fullmatch(text(quantity))
    return int(found[1]) * _UNITS[found[2]] if found else None


def _words(container: Object) -> Iterator[str]:
    """The words of its command, with the values of the variables that it is given."""
    values = {text(one.get("name")): text(one.get("value")) for one in dicts(container.get("env"))}
    for key in ("command", "args"):
        for word in _list(container.get(key)):
            yield _VARIABLE.sub(lambda name: values.get(name[1]) or name[0], text(word))


def _list(told: Any) -> Iterator[Any]:
    return iter(told) if isinstance(told, list) else iter(())


def _count(told: Any) -> int | None:
    return told if type(told) is int and 0 <= told < 1 << 31 else None
