"""Block devices: their traffic, their errors, and whether they are there to be used."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources import procfs
from exporters.sources.procfs import Disk
from exporters.sources.storage.disks import Block, Blocks
from pipeline.catalog.metrics import DISK

# Memory, loop-back and removable devices, and partitions, whose traffic is counted on their disk already.
_NOT_DISKS: Final = re.compile(r"(z?ram|loop|fd|sr)\d+|(h|s|v|xv)d[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)p\d+|mmcblk\d+boot\d+")


class DiskCollector:
    """A reading for each disk."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._blocks = Blocks(site.sys)

    def absent(self) -> str:
        """No disk but memory and loop devices."""
        return "no disk is in the kernel's list"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The disks' readings. Raises OSError where the kernel has no list of them."""
        boot = procfs.passed(procfs.cpu(self._site.proc, self._site.ticks).boot, now.timestamp())
        here = [disk for disk in procfs.disks(self._site.proc) if not _NOT_DISKS.fullmatch(disk.name)]
        self._blocks.keep([disk.name for disk in here])
        for disk in here:
            yield _disk(self._site.node, disk, self._blocks.of(disk.name), boot)


def _disk(node: str, disk: Disk, block: Block, boot: float | None) -> Reading:
    return Reading(
        DISK,
        {"node": node, "disk": disk.name},
        {
            "disk.reads": disk.reads,
            "disk.read": disk.read_bytes,
            "disk.read.time": disk.read_seconds,
            "disk.writes": disk.writes,
            "disk.written": disk.written_bytes,
            "disk.write.time": disk.write_seconds,
            "disk.io.time": disk.io_seconds,
            "disk.in_flight": disk.in_flight,
            "disk.errors": block.errors,
            "disk.online": None if block.online is None else int(block.online),
        },
        {"model": block.model} if block.model else {},
        since=boot,
    )
