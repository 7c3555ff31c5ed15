"""Block devices: their traffic, their errors, and whether they are there to be used."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import compress
from typing import Final

from exporters.collector import Reading, Site, Table
from exporters.missed import Missed
from exporters.sources import procfs
from exporters.sources.procfs import Disks
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

    def collect(self, now: datetime) -> Iterator[Table | Reading]:
        """The disks' readings, also of a fixed one that the kernel no longer lists. Raises OSError where the kernel has no list of them."""
        boot = procfs.passed(procfs.cpu(self._site.proc, self._site.ticks).boot, now.timestamp())
        there = procfs.disks(self._site.proc)
        chosen = [_NOT_DISKS.fullmatch(name) is None for name in there.names]
        here = Disks._make([*compress(column, chosen)] for column in there)
        self._blocks.keep(here.names)
        blocks = [self._blocks.of(name) for name in here.names]
        about = [{"model": block.model} if block.model else {} for block in blocks]
        yield Table(DISK, [(self._site.node, name) for name in here.names], _columns(here, blocks), about, boot)
        self._known.update(zip(here.names, about, strict=True))
        listed = dict(zip(here.names, blocks, strict=True))
        fixed = [name for name, block in listed.items() if block.fixed]
        gone = self._missed.missing({name: block.wwid for name, block in listed.items()}, fixed, now.timestamp())
        for name, wwid in gone.items():
            if name != wwid:  # another disk under its name has replaced it
                identity = {"node": self._site.node, "disk": name}
                yield Reading(DISK, identity, {"disk.present": 0}, self._known.get(name, {}), since=boot)

    def kept(self) -> Mapping[str, int]:
        """The disks that should be there."""
        return self._missed.kept()


def _columns(here: Disks, blocks: Sequence[Block]) -> Mapping[str, Sequence[float | int | None]]:
    return {
        "disk.present": [1] * len(blocks),
        "disk.reads": here.reads,
        "disk.read": here.read_bytes,
        "disk.read.time": here.read_seconds,
        "disk.writes": here.writes,
        "disk.written": here.written_bytes,
        "disk.write.time": here.write_seconds,
        "disk.io.time": here.io_seconds,
        "disk.in_flight": here.in_flight,
        "disk.errors": [block.errors for block in blocks],
        "disk.online": [None if block.online is None else int(block.online) for block in blocks],
    }
