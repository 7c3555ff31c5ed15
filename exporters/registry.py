"""Every collector of the agent. One file, one line here, its families in the catalogue, a fixture and a golden page."""

from collections.abc import Callable
from typing import Final, NamedTuple

from exporters import clock, kernel, oom, redfish
from exporters.cgroup import CgroupCollector
from exporters.collector import Collector, Site
from exporters.host import HostCollector
from exporters.storage import DiskCollector, MountCollector
from pipeline.catalog.metrics import CGROUP, CHASSIS, DISK, HOST, MOUNT, Family


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
    Entry("clock", (), clock.ClockCollector, clock.EVERY),
    Entry("redfish", (CHASSIS,), redfish.RedfishCollector, redfish.EVERY),
    Entry("kernel", (), kernel.KernelCollector, kernel.EVERY),
    Entry("oom", (), oom.OomCollector, oom.EVERY),
)
