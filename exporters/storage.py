"""File systems and block devices."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources import procfs
from exporters.sources.mounts import MountProber, Probe
from exporters.sources.procfs import Disk, Mount
from pipeline.catalog.metrics import DISK, MOUNT

# Kernel interfaces that look like file systems and hold no data, and automount points, which a probe would mount.
PSEUDO: Final = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl hugetlbfs mqueue nsfs proc "
    "pstore rpc_pipefs securityfs selinuxfs squashfs sysfs tracefs".split()
)
# Memory, loop-back and removable devices, and partitions, whose traffic is counted on their disk already.
_NOT_DISKS: Final = re.compile(r"(z?ram|loop|fd|sr)\d+|(h|s|v|xv)d[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)p\d+|mmcblk\d+boot\d+")


class MountCollector:
    """A reading for each file system, from probes that may hang without holding up the others."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._prober = MountProber(site.probes(), site.probe_timeout)

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The file systems' readings; of a hung or unasked one only what the kernel's list says."""
        mounts = distinct(procfs.mounts(self._site.proc))
        probes = self._prober.probe([mount.mount_point for mount in mounts])
        for mount in mounts:
            yield _mount(self._site.node, mount, probes[mount.mount_point])

    def absent(self) -> str:
        """No file system is mounted but the kernel's own."""
        return "" if distinct(procfs.mounts(self._site.proc)) else "no file system is mounted but the kernel's own"

    def close(self) -> None:
        """Lets go of the probes."""
        self._prober.close()


class DiskCollector:
    """A reading for each disk."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def absent(self) -> str:
        """No disk but memory and loop devices."""
        return "no disk is in the kernel's list"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The disks' readings. Raises OSError where the kernel has no list of them."""
        boot = procfs.cpu(self._site.proc, self._site.ticks).boot
        for disk in procfs.disks(self._site.proc):
            if not _NOT_DISKS.fullmatch(disk.name):
                yield _disk(self._site.node, disk, boot)


def distinct(mounts: Iterable[Mount]) -> list[Mount]:
    """The mounts worth watching: real file systems, each once (of several places the shortest), overlays only at the root."""
    chosen: dict[str, Mount] = {}
    for mount in mounts:
        if mount.type in PSEUDO or (mount.type == "overlay" and mount.mount_point != "/"):
            continue
        other = chosen.get(mount.device)
        if other is None or len(mount.mount_point) < len(other.mount_point):
            chosen[mount.device] = mount
    return list(chosen.values())


def _mount(node: str, mount: Mount, probe: Probe) -> Reading:
    usage = probe.usage
    return Reading(
        MOUNT,
        {"node": node, "mount_point": mount.mount_point, "source": mount.source},
        {
            "mount.size": usage.size if usage else None,
            "mount.free": usage.free if usage else None,
            # A file system without a fixed number of inodes says 0 of 0: that is absent.
            "mount.inodes": usage.inodes if usage and usage.inodes else None,
            "mount.inodes_free": usage.inodes_free if usage and usage.inodes else None,
            "mount.read_only": int(mount.read_only),
            "mount.probe.ok": None if probe.ok is None else int(probe.ok),
            "mount.probe.time": probe.seconds,
        },
        {"type": mount.type},
    )


def _disk(node: str, disk: Disk, boot: float | None) -> Reading:
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
        },
        since=boot,
    )
