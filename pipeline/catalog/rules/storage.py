"""What shows the explicit faults of storage."""

from typing import Final

from pipeline.catalog.events import FILESYSTEM_ERROR, IO_ERROR
from pipeline.catalog.fault import Fault
from pipeline.catalog.faults import DISK_FAILING, FILESYSTEM_FULL, FILESYSTEM_READ_ONLY, MOUNT_HUNG, MOUNT_STALE_OR_GONE
from pipeline.catalog.metrics import MOUNT
from pipeline.catalog.rule import Happened, Hold, Limit, Missing, Rule, Scope, View, metric
from pipeline.catalog.rules.remote_storage import REMOTE

# Places of the machine itself and of containers' plumbing (a container's /etc/hosts), removable and image mounts.
_PLUMBING: Final = r"/(etc|proc|sys|boot|efi|snap|media|cdrom)(/.*)?|/dev(/(?!shm$).*)?|/run/.*|.*/(secrets|kubernetes\.io~.*)(/.*)?"
_IMAGES: Final = r"iso9660|udf|squashfs|erofs|cramfs|romfs|ramfs|fuse\.(portal|gvfsd-fuse|lxcfs)"
_REAL: Final = {"mount_point": _PLUMBING, "type": _IMAGES}
_WRITABLE: Final = Limit(metric("mount.read_only"), 0, 1, above=False)


def _said(name: str) -> str:
    """A metric's name as it stands in words for people."""
    return name.replace(".", "_")


def _written(fault: Fault, errno: int, says: str) -> Rule:
    """A folder that the user named cannot be written, with that error number (Linux's, the same on x86-64 and arm64)."""
    number = metric("mount.write.errno")
    return Rule(
        fault=fault,
        when=(Limit(number, errno, errno - 1), Limit(number, errno, errno + 1, above=False)),
        says=says,
        cleared="{place} can be written again, within {mount_write_time}",
        hold=Hold(2),
        clear=Hold(2),
        entity="mount_point",
    )


_MOUNTS: tuple[Rule, ...] = (
    Rule(
        fault=FILESYSTEM_FULL,
        when=(
            Limit(metric("mount.free"), 0.02, 0.05, above=False, of=metric("mount.size")),
            Limit(metric("mount.free"), 1e12, 1.5e12, above=False),  # 2 % of a petabyte is room for many checkpoints
            _WRITABLE,
        ),
        says="{place} is full: {mount_free} of {mount_size} free{growth}",
        cleared="{place} has {mount_free} of {mount_size} free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=FILESYSTEM_FULL,
        when=(Limit(metric("mount.inodes_free"), 0.02, 0.05, above=False, of=metric("mount.inodes")), _WRITABLE),
        says="{place} has no inodes left: {mount_inodes_free} of {mount_inodes} free{growth}",
        cleared="{place} has {mount_inodes_free} of {mount_inodes} inodes free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="mount_point",
        never=_REAL,
    ),
    *(
        Rule(
            fault=FILESYSTEM_FULL,
            when=(Limit(metric(used), 0.98, 0.95, of=metric(limit)),),
            says=f"the quota of {{of}} on {{place}} is spent: {{{_said(used)}}} of {{{_said(limit)}}}{more}",
            cleared=f"the quota of {{of}} on {{place}} has room: {{{_said(used)}}} of {{{_said(limit)}}}{more}",
            hold=Hold(2),
            clear=Hold(2),
            entity="folder",
        )
        for used, limit, more in (("quota.used", "quota.limit", ""), ("quota.files", "quota.files.limit", " files"))
    ),
    Rule(
        fault=FILESYSTEM_READ_ONLY,
        when=(Limit(metric("mount.read_only"), 1, 0),),
        says="{place}, where the run's checkpoints lie, is read-only",
        cleared="{place} can be written again",
        clear=Hold(2),
        entity="mount_point",
        scope=Scope.CHECKPOINTS,
    ),
    Rule(
        fault=FILESYSTEM_READ_ONLY,
        when=(Limit(metric("mount.read_only"), 1, 0),),
        says="{place} was writable and is read-only now",
        cleared="{place} can be written again",
        clear=Hold(2),
        entity="mount_point",
        turned=True,
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_HUNG,
        when=(Limit(metric("mount.probe.ok"), 0, 1, above=False), Limit(metric("mount.probe.time"), 1.5, 1)),
        says="{place} has not answered for {mount_probe_time}",
        cleared="{place} answers again, within {mount_probe_time}",
        hold=Hold(2),
        clear=Hold(2),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=(Limit(metric("mount.probe.ok"), 0, 1, above=False), Limit(metric("mount.probe.time"), 1, 1.5, above=False)),
        says="{place} answers with an error: it is stale, or what it was mounted from is gone",
        cleared="{place} answers again",
        hold=Hold(2, 5),
        clear=Hold(2),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=Happened(FILESYSTEM_ERROR, code="shutdown"),
        says="{place} shut itself down: nothing on it can be read or written until it is mounted anew{message}",
        cleared="no more was told of {place} for a minute",
        clear=Hold(2, 55),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=Missing(MOUNT),
        says="{place}, where the run's checkpoints lie, is no longer mounted",
        cleared="{place} is mounted again",
        entity="mount_point",
        scope=Scope.CHECKPOINTS,
    ),
)

_WRITES: tuple[Rule, ...] = (
    Rule(
        fault=MOUNT_HUNG,
        when=(
            Limit(metric("mount.write.ok"), 0, 1, above=False),
            Limit(metric("mount.write.time"), 1.5, 1),
            Limit(metric("mount.write.errno"), 0, 1, above=False),
        ),
        says="a small file that is written to {place} has not been stored for {mount_write_time}",
        cleared="the write to {place} came to an end after {mount_write_time}",
        hold=Hold(2),
        clear=Hold(),  # it ended: a mount that is gone by then is not written to again
        entity="mount_point",
    ),
    Rule(
        fault=MOUNT_HUNG,
        when=(
            Limit(metric("mount.fuse.stalled"), 60, 1),
            Limit(metric("mount.size"), 0, 1, above=False),  # the server cannot be asked: its mount is its owner's alone
        ),
        says="{mount_fuse_waiting} requests wait for the server of {place}, and for {mount_fuse_stalled} none was seen to be answered",
        cleared="the server of {place} answers again",
        clear=Hold(2),
        entity="mount_point",
        never=_REAL,
    ),
    _written(FILESYSTEM_FULL, 28, "{place} cannot be written: no space is left on it"),
    _written(FILESYSTEM_FULL, 122, "{place} cannot be written: a quota is used up"),
    _written(FILESYSTEM_READ_ONLY, 30, "{place} cannot be written: it is read-only"),
    _written(MOUNT_STALE_OR_GONE, 116, "{place} cannot be written: its handle is stale"),
    _written(MOUNT_STALE_OR_GONE, 107, "{place} cannot be written: its server is gone"),
    _written(DISK_FAILING, 5, "{place} cannot be written or read back: input/output error"),
)

_PLAYERS: Final = {"disk": r"(sr|fd|loop|zram)\d+"}  # an empty drive fails whoever asks it


def _logged(code: str, says: str, times: int = 1, within: float = 0.0) -> Rule:
    """The kernel told so of a disk: of its errors that one, which is no command that the disk does not know ("target")."""
    return Rule(
        fault=DISK_FAILING,
        when=Happened(IO_ERROR, code, times, within),
        says=says + "{message}",
        cleared="the kernel tells of no more errors of {place}",
        clear=Hold(6, 60),
        entity="disk",
        never=_PLAYERS,
    )


_DISKS: tuple[Rule, ...] = (
    Rule(
        fault=DISK_FAILING,
        when=Happened(FILESYSTEM_ERROR, code="error"),
        says="the file system at {place} found itself damaged{message}",
        cleared="no more was told of {place} for a minute",
        clear=Hold(2, 55),
        entity="mount_point",
        never=_REAL,
    ),
    _logged("medium", "{place} cannot read or keep data"),
    _logged("controller", "the controller of {place} failed"),
    _logged("io", "{place} did not do what it was asked for"),
    _logged("timeout", "{place} answered too late, three times in five minutes", 3, 300.0),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk.errors"), 5, 0, view=View.INCREASE),),  # a single one may be a command that the disk does not know
        says="{place} ended {value} commands with an error",
        cleared="{place} has no more errors",
        clear=Hold(3, 20),
        entity="disk",
    ),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk.online"), 0, 1, above=False),),
        says="{place} is offline, or its controller is dead",
        cleared="{place} is online again",
        hold=Hold(2),
        clear=Hold(2),
        entity="disk",
    ),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk.present"), 0, 1, above=False),),
        says="{place} is gone: the kernel no longer lists it",
        cleared="{place} is there again",
        hold=Hold(2),
        clear=Hold(2),
        entity="disk",
    ),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk_health.media_errors"), 1, 0, view=View.INCREASE),),
        says="{place} could not read or keep data, {value} times since it was last asked",
        cleared="{place} has no more media errors",
        clear=Hold(4, 40),
        entity="disk",
    ),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk_health.wear"), 1, 0.99),),
        says="{place} has used up its rated endurance: from here on it may fail to keep what is written",
        cleared="{place} has endurance left",
        hold=Hold(2),
        clear=Hold(2),
        entity="disk",
        turned=True,  # many a disk goes on for long: it is news once
    ),
    Rule(
        fault=DISK_FAILING,
        when=(Limit(metric("disk_health.degraded"), 1, 0),),
        says="{place} says that it is unfit: it has no spare blocks left, is unreliable, or read-only",
        cleared="{place} no longer says that it is unfit",
        hold=Hold(2),
        clear=Hold(2),
        entity="disk",
    ),
)

STORAGE: tuple[Rule, ...] = (*_MOUNTS, *_WRITES, *REMOTE, *_DISKS)
