"""Block devices: their traffic, their errors, and whether they are there to be used."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.missed import Missed
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
        self._missed = Missed("disk", site.kept)
        self._known: dict[str, Mapping[str, str]] = {}  # what else was known of each disk

    def absent(self) -> str:
        """No disk but memory and loop devices."""
        return "no disk is in the kernel's list"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The disks' readings, also of a fixed one that the kernel no longer lists. Raises OSError where the kernel has no list of them."""
        boot = procfs.passed(procfs.cpu(self._site.proc, self._site.ticks).boot, now.timestamp())
        here = [disk for disk in procfs.disks(self._site.proc) if not _NOT_DISKS.fullmatch(disk.name)]
        self._blocks.keep([disk.name for disk in here])
        listed: dict[str, str] = {}
        fixed = set()
        for disk in here:
            block = self._blocks.of(disk.name)
            about = self._known[disk.name] = {"model": block.model} if block.model else {}
            listed[disk.name] = block.wwid
            if block.fixed:
                fixed.add(disk.name)
            yield Reading(DISK, {"node": self._site.node, "disk": disk.name}, _values(disk, block), about, since=boot)
        for name, wwid in self._missed.missing(listed, fixed, now.timestamp()).items():
            if name != wwid:  # another disk under its name has replaced it
                values = {**dict.fromkeys(_NAMES), "disk.present": 0}
                yield Reading(DISK, {"node": self._site.node, "disk": name}, values, self._known.get(name, {}), since=boot)

    def kept(self) -> Mapping[str, int]:
        """The disks that should be there."""
        return self._missed.kept()


_NAMES: Final = tuple(metric.name for metric in DISK.metrics)


def _values(disk: Disk, block: Block) -> dict[str, float | int | None]:
    return {
        "disk.present": 1,
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
    }
