"""Every collector of the agent. One file, one line here, its family in the catalogue, a fixture and a golden page."""

from collections.abc import Callable
from typing import Final, NamedTuple

from exporters.cgroup import CgroupCollector
from exporters.collector import Collector, Site
from exporters.host import HostCollector
from exporters.storage import DiskCollector, MountCollector
from pipeline.catalog.metrics import CGROUP, DISK, HOST, MOUNT, Family


class Entry(NamedTuple):
    """A collector's name, the one family that it reads, and how it is made."""

    name: str
    family: Family
    make: Callable[[Site], Collector]


COLLECTORS: Final = (
    Entry("host", HOST, HostCollector),
    Entry("mount", MOUNT, MountCollector),
    Entry("disk", DISK, DiskCollector),
    Entry("cgroup", CGROUP, CgroupCollector),
)
