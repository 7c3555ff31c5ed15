"""The control groups that this node's ranks are in: their memory, and who was killed for want of it."""

from collections.abc import Iterator
from datetime import datetime

from exporters.collector import Reading, Site
from exporters.host.groups import Groups
from exporters.sources import cgroups
from pipeline.catalog.metrics import CGROUP


class CgroupCollector:
    """A reading for each control group and run. A group is told of for a while after its last rank: that may be the one that was killed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._groups = Groups(site)

    def absent(self) -> str:
        """No control groups, or no rank that is in one."""
        if not self._site.cgroups.is_dir():
            return f"no control groups at {self._site.cgroups}"
        return "" if self._site.ranks() else "no rank of a run is on this node"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The groups' readings; none where no rank is known."""
        for (run, path), group in self._groups.found(now.timestamp()).items():
            memory = cgroups.memory(group)
            if memory is not None:
                yield Reading(
                    CGROUP,
                    {"node": self._site.node, "cgroup": path, "run": run},
                    {"cgroup.oom_kills": memory.oom_kills, "cgroup.memory.used": memory.used, "cgroup.memory.limit": memory.limit},
                )
