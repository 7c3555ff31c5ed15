"""What shows the explicit faults of storage."""

from typing import Final

from pipeline.catalog.faults import FILESYSTEM_FULL, FILESYSTEM_READ_ONLY, MOUNT_HUNG, MOUNT_STALE_OR_GONE
from pipeline.catalog.metrics import MOUNT
from pipeline.catalog.rule import Hold, Limit, Missing, Rule, Scope, metric

# Places of the machine itself and of containers' plumbing (a container's /etc/hosts), removable and image mounts.
_PLUMBING: Final = r"/(etc|proc|sys|boot|efi|snap|media|cdrom)(/.*)?|/dev(/(?!shm$).*)?|/run/.*|.*/(secrets|kubernetes\.io~.*)(/.*)?"
_IMAGES: Final = r"iso9660|udf|squashfs|erofs|cramfs|romfs|ramfs|fuse\.(portal|gvfsd-fuse|lxcfs)"
_REAL: Final = {"mount_point": _PLUMBING, "type": _IMAGES}
_WRITABLE: Final = Limit(metric("mount.read_only"), 0, 1, above=False)

STORAGE: tuple[Rule, ...] = (
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
        when=Missing(MOUNT),
        says="{place}, where the run's checkpoints lie, is no longer mounted",
        cleared="{place} is mounted again",
        entity="mount_point",
        scope=Scope.CHECKPOINTS,
    ),
)
