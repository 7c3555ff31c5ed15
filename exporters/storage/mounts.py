"""File systems: how full they are, whether they answer, whether they can be written."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources import procfs
from exporters.sources.procfs import Mount
from exporters.sources.storage import fuse
from exporters.sources.storage.fuse import Connection
from exporters.sources.storage.mount_changes import MountChanges
from exporters.sources.storage.mounts import UNKNOWN, Probe, Prober
from exporters.sources.storage.probes import Usage, Written
from exporters.sources.storage.tiers import tier
from exporters.storage.fuse_waits import FuseWaits
from pipeline.catalog.metrics import MOUNT
from pipeline.settings import AgentSettings

WITHIN: Final = 4.0  # seconds between two looks, at most: two of them, with a time-out, are to show a hung mount within ten

# Kernel interfaces that look like file systems and hold no data, and automount points, which a probe would mount.
PSEUDO: Final = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl hugetlbfs mqueue nsfs proc "
    "pstore rpc_pipefs securityfs selinuxfs squashfs sysfs tracefs".split()
)


class MountCollector:
    """A reading for each file system, from probes that may hang without holding up the others."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._prober = Prober(site.probes(), site.probe_timeout)
        self._writer = Prober(site.writes(), site.probe_timeout)
        self._write_due: dict[str, float] = {}  # folders that the user named: when they are to be written to, seconds since 1970
        self._waits = FuseWaits()
        self._changes = MountChanges(site.proc)
        self._silent: frozenset[str] = frozenset()  # mounts that did not answer at the last pass
        self._unsure = False

    def absent(self) -> str:
        """No file system is mounted but the kernel's own."""
        return "no file system is mounted but the kernel's own"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The file systems' readings; of a hung or unasked one only what the kernel's list says."""
        mounts = distinct(procfs.mounts(self._site.proc))
        probes = self._prober.probe([mount.mount_point for mount in mounts])
        silent = frozenset(point for point, probe in probes.items() if probe.ok is False)
        self._unsure, self._silent = bool(silent - self._silent), silent
        writes = self._write(mounts, probes, now.timestamp())
        connections = {m.mount_point: fuse.connection(m, self._site.sys) for m in mounts}
        waiting = {point: c.waiting for point, c in connections.items() if c is not None and c.waiting is not None}
        stalled = self._waits.stalled(waiting, now.timestamp())
        for mount in mounts:
            point = mount.mount_point
            yield Reading(
                MOUNT,
                {"node": self._site.node, "mount_point": point, "source": mount.source},
                {
                    **_usage(mount, probes[point]),
                    **_written(writes.get(point)),
                    "mount.fuse.waiting": waiting.get(point),
                    "mount.fuse.stalled": stalled.get(point),
                },
                self._attributes(mount, connections[point]),
            )

    def stirred(self) -> bool:
        """Something was mounted, or mounted otherwise; or a file system did not answer for the first time, and may be slow or hung."""
        return self._changes.seen() or self._unsure

    def close(self) -> None:
        """Lets go of the probes and the kernel's lists."""
        self._changes.close()
        self._prober.close()
        self._writer.close()

    def _write(self, mounts: list[Mount], probes: Mapping[str, Probe[Usage]], now: float) -> dict[str, Probe[Written]]:
        """What became of writing to the folders that the user named, by mount point; the worst where several lie on one mount.

        A mount that does not answer is not written to: one stuck thread is enough.
        """
        on = written_to(self._site.settings, mounts)
        well = [folder for folder, point in on.items() if probes[point].ok and not self._writer.hangs(folder)]
        due = [folder for folder in well if now >= self._write_due.get(folder, 0.0)]
        for folder in due:
            self._write_due[folder] = now + self._site.settings.probe_interval
        asked = [*due, *(folder for folder in on if self._writer.hangs(folder))]
        found: dict[str, Probe[Written]] = {}
        for folder, probe in (self._writer.probe(asked) if asked else {}).items():
            if probe.ok is False:
                self._write_due[folder] = now  # looked at again at the next pass: one failure may be nothing
            before = found.get(on[folder])
            if before is None or before.ok or before.ok is None:
                found[on[folder]] = probe
        return found

    def _attributes(self, mount: Mount, connection: Connection | None) -> dict[str, str]:
        """Its type and tier; of a FUSE file system the number under which its connection may be aborted."""
        said = self._site.settings.tiers.get(mount.mount_point) or tier(mount, self._site.sys)
        more = {"tier": str(said)} if said else {}
        if connection is not None and connection.abortable:
            more["fuse"] = connection.number
        return {"type": mount.type, **more}


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


def written_to(settings: AgentSettings, mounts: Iterable[Mount]) -> dict[str, str]:
    """The folders that are to be written to, each with the mount point of the writable mount that it lies on."""
    found: dict[str, str] = {}
    for folder in settings.probe_paths:
        above = [mount for mount in mounts if folder.is_relative_to(mount.mount_point)]
        nearest = max(above, key=lambda mount: len(Path(mount.mount_point).parts), default=None)
        if nearest is not None and not nearest.read_only:
            found[str(folder)] = nearest.mount_point
    return found


def _usage(mount: Mount, probe: Probe[Usage]) -> dict[str, float | int | None]:
    usage = probe.found
    return {
        "mount.size": usage.size if usage else None,
        "mount.free": usage.free if usage else None,
        # A file system without a fixed number of inodes says 0 of 0: that is absent.
        "mount.inodes": usage.inodes if usage and usage.inodes else None,
        "mount.inodes_free": usage.inodes_free if usage and usage.inodes else None,
        "mount.read_only": int(mount.read_only),
        "mount.probe.ok": None if probe.ok is None else int(probe.ok),
        "mount.probe.time": probe.seconds,
    }


def _written(probe: Probe[Written] | None) -> dict[str, float | int | None]:
    probe = probe or UNKNOWN
    done = probe.found
    return {
        "mount.write.ok": None if probe.ok is None else int(probe.ok),
        "mount.write.time": probe.seconds,
        "mount.write.sync": done.sync if done else None,
        "mount.write.read": done.read if done else None,
        "mount.write.errno": None if probe.ok is None else probe.errno,
    }
