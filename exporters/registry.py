"""Every collector of the agent. One file, one line here, its families in the catalogue, a fixture and a golden page."""

from collections.abc import Callable
from typing import Final, NamedTuple

from exporters import gpu, oom, scheduler
from exporters.cgroup import CgroupCollector
from exporters.collector import Collector, Site
from exporters.host import HostCollector
from exporters.netdev import NetdevCollector
from exporters.rdma import RdmaCollector
from exporters.scrape import ScrapeCollector
from exporters.storage import DiskCollector, MountCollector
from pipeline.catalog.metrics import (
    CGROUP,
    DISK,
    GPU,
    GPU_LINK,
    GPU_PARTITION,
    GPU_PROCESS,
    HOST,
    MOUNT,
    NETDEV,
    RDMA_PORT,
    ROLLOUT_ENGINE,
    SCHED_JOB,
    SCHED_NODE,
    SCRAPE,
    Family,
)


class Entry(NamedTuple):
    """A collector's name, the families that it alone reads (none: it tells of events), how it is made, and its pace.

    `every` is seconds between two passes; None: the agent's interval.
    """

    name: str
    families: tuple[Family, ...]
    make: Callable[[Site], Collector]
    every: float | None = None


COLLECTORS: Final = (
    Entry("host", (HOST,), HostCollector),
    Entry("mount", (MOUNT,), MountCollector),
    Entry("disk", (DISK,), DiskCollector),
    Entry("cgroup", (CGROUP,), CgroupCollector),
    Entry("gpu", (GPU, GPU_LINK, GPU_PARTITION, GPU_PROCESS), gpu.GpuCollector, gpu.EVERY),
    Entry("rdma_port", (RDMA_PORT,), RdmaCollector),
    Entry("netdev", (NETDEV,), NetdevCollector),
    Entry("scrape", (SCRAPE, ROLLOUT_ENGINE), ScrapeCollector),  # readings of other families, too, where no one else has them (natives.py)
    Entry("scheduler", (SCHED_NODE, SCHED_JOB), scheduler.SchedulerCollector, scheduler.EVERY),
    Entry("oom", (), oom.OomCollector, oom.EVERY),
)
