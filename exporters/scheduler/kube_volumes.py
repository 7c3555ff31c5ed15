"""Drivers of volumes (CSI) on the nodes of a Kubernetes cluster, and volumes that nobody has any more. Pure.

Nobody says that a driver should be on a node: one that was there, and is still on other nodes, or has its pod here, should be.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from exporters.collector import Reading
from exporters.sources.scheduler.kube_csi import CsiPod, Orphan
from pipeline.catalog.metrics import CSI_DRIVER, SCHED_VOLUME

MOST_VOLUMES: Final = 1000  # orphans that are told of

Drivers = Mapping[str, Mapping[str, int | None]]
"""By node, by driver: how many volumes it may have there, None where that is not said."""


class Volumes:
    """Keeps which drivers were on which nodes. `node` is the one whose agent looks."""

    def __init__(self, scheduler: str, node: str) -> None:
        self._scheduler, self._node = scheduler, node
        self._were: set[tuple[str, str]] = set()

    def drivers(self, registered: Drivers | None, pods: Iterable[CsiPod]) -> Iterator[Reading]:
        """A reading for each driver that is, or should be, on a node. `registered` is None where the server does not tell."""
        own = {(pod.node, pod.driver): pod for pod in pods}
        there = {(node, driver) for node, some in (registered or {}).items() for driver in some}
        if registered is not None:
            installed = {driver for _, driver in there}
            # A node that is gone misses nothing, nor does one that loses what the whole cluster loses: that was removed.
            self._were = {(node, driver) for node, driver in self._were | there if node in registered and driver in installed}
        for node, driver in sorted(self._were | own.keys()):
            pod = own.get((node, driver))
            yield Reading(
                CSI_DRIVER,
                {"node": node, "scheduler": self._scheduler, "driver": driver},
                {
                    "csi_driver.registered": int((node, driver) in there) if registered is not None else None,
                    "csi_driver.ready": int(pod.ready) if pod else None,
                    "csi_driver.restarts": pod.restarts if pod else None,
                    "csi_driver.volumes.max": (registered or {}).get(node, {}).get(driver),
                },
                {"version": pod.version} if pod and pod.version else {},
            )

    def orphans(self, found: Iterable[Orphan]) -> Iterator[Reading]:
        """A reading for each volume that nobody has any more, the largest first."""
        for one in sorted(found, key=lambda orphan: (-(orphan.size or 0), orphan.name))[:MOST_VOLUMES]:
            attributes = {"state": one.phase, "claim": one.claim}
            yield Reading(
                SCHED_VOLUME,
                {"node": self._node, "scheduler": self._scheduler, "volume": one.name},
                {"sched_volume.size": one.size, "sched_volume.failed": int(one.phase == "Failed")},
                {key: word for key, word in attributes.items() if word},
            )
