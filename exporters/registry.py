"""Every collector of the agent. One file, one line here, its families in the catalogue, a fixture and a golden page."""

from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple

from exporters.collector import Collector, Site
from exporters.gpu import ascend_logs
from exporters.gpu import collector as gpu
from exporters.host import clock, oom, redfish
from exporters.host.cgroup import CgroupCollector
from exporters.host.machine import HostCollector
from exporters.kernel import collector as kernel
from exporters.kernel import pstore
from exporters.network.netdev import NetdevCollector
from exporters.network.rdma import RdmaCollector
from exporters.scheduler import collector as scheduler
from exporters.scrape import ScrapeCollector
from exporters.storage import disk_health, mounts, quotas, volumes
from exporters.storage.disks import DiskCollector
from exporters.storage.lustre import LustreCollector
from exporters.storage.mounts import MountCollector
from exporters.storage.nfs import NfsCollector
from pipeline.catalog.metrics import (
    CACHE,
    CGROUP,
    CHASSIS,
    CSI_DRIVER,
    DISK,
    DISK_HEALTH,
    GPU,
    GPU_LINK,
    GPU_PARTITION,
    GPU_PROCESS,
    HOST,
    LUSTRE,
    LUSTRE_TARGET,
    MOUNT,
    NETDEV,
    NFS,
    NFS_OPERATION,
    NFS_SERVER,
    QUOTA,
    RDMA_PORT,
    REGION_LINK,
    ROLLOUT_ENGINE,
    SCHED_JOB,
    SCHED_NODE,
    SCHED_VOLUME,
    SCRAPE,
    SWITCH_PORT,
    VOLUME,
    Family,
)


class Entry(NamedTuple):
    """A collector's name, the families that it alone reads (none: it tells of events), how it is made, and its pace.

    `every` is seconds between two passes; None: the agent's interval, or `within` where that is shorter, as its faults are to be seen soon.
    """

    name: str
    families: tuple[Family, ...]
    make: Callable[[Site], Collector]
    every: float | None = None
    within: float = inf


COLLECTORS: Final = (
    Entry("host", (HOST,), HostCollector),
    Entry("mount", (MOUNT,), MountCollector, within=mounts.WITHIN),
    Entry("nfs", (NFS, NFS_OPERATION, NFS_SERVER), NfsCollector),
    Entry("lustre", (LUSTRE, LUSTRE_TARGET), LustreCollector),
    Entry("quota", (QUOTA,), quotas.QuotaCollector, quotas.EVERY),
    Entry("volume", (VOLUME,), volumes.VolumeCollector, volumes.EVERY),
    Entry("disk", (DISK,), DiskCollector),
    Entry("disk_health", (DISK_HEALTH,), disk_health.DiskHealthCollector, disk_health.EVERY),
    Entry("cgroup", (CGROUP,), CgroupCollector),
    Entry("gpu", (GPU, GPU_LINK, GPU_PARTITION, GPU_PROCESS), gpu.GpuCollector, gpu.EVERY),
    Entry("rdma_port", (RDMA_PORT,), RdmaCollector),
    Entry("netdev", (NETDEV,), NetdevCollector),
    # The scrape gives readings of other families, too, where no one else has them (natives.py).
    Entry("scrape", (SCRAPE, ROLLOUT_ENGINE, CACHE, REGION_LINK, SWITCH_PORT), ScrapeCollector),
    Entry("scheduler", (SCHED_NODE, SCHED_JOB, CSI_DRIVER, SCHED_VOLUME), scheduler.SchedulerCollector, scheduler.EVERY),
    Entry("redfish", (CHASSIS,), redfish.RedfishCollector, redfish.EVERY),
    Entry("clock", (), clock.ClockCollector, clock.EVERY),
    Entry("kernel", (), kernel.KernelCollector, kernel.EVERY),
    Entry("ascend_logs", (), ascend_logs.AscendLogCollector, ascend_logs.EVERY),
    Entry("pstore", (), pstore.PstoreCollector, pstore.EVERY),
    Entry("oom", (), oom.OomCollector, oom.EVERY),
)
