"""What shows that a part of the storage elsewhere fails: a server's target, a volume of Kubernetes."""

from pipeline.catalog.faults import FILESYSTEM_FULL, MOUNT_HUNG, MOUNT_STALE_OR_GONE
from pipeline.catalog.rule import Hold, Limit, Rule, metric

REMOTE: tuple[Rule, ...] = (
    Rule(
        fault=MOUNT_HUNG,
        when=(Limit(metric("lustre_target.connected"), 0, 1, above=False),),
        says="the client is not connected to {place}: what lies there can be neither read nor written",
        cleared="the client is connected to {place} again",
        hold=Hold(2, 0.5),
        clear=Hold(2),
        entity="target",
    ),
    Rule(
        fault=FILESYSTEM_FULL,
        when=(
            Limit(metric("lustre_target.free"), 0.02, 0.05, above=False, of=metric("lustre_target.size")),
            Limit(metric("lustre_target.free"), 1e12, 1.5e12, above=False),
        ),
        says="{place} is full, and with it every file that lies there: {lustre_target_free} of {lustre_target_size} free{growth}",
        cleared="{place} has {lustre_target_free} of {lustre_target_size} free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="target",
    ),
    Rule(
        fault=FILESYSTEM_FULL,
        when=(
            Limit(metric("volume.free"), 0.02, 0.05, above=False, of=metric("volume.size")),
            Limit(metric("volume.free"), 1e12, 1.5e12, above=False),
        ),
        says="the volume of claim {place} is full: {volume_free} of {volume_size} free{growth}",
        cleared="the volume of claim {place} has {volume_free} of {volume_size} free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="claim",
    ),
    Rule(
        fault=FILESYSTEM_FULL,
        when=(Limit(metric("volume.inodes_free"), 0.02, 0.05, above=False, of=metric("volume.inodes")),),
        says="the volume of claim {place} has no inodes left: {volume_inodes_free} of {volume_inodes} free{growth}",
        cleared="the volume of claim {place} has {volume_inodes_free} of {volume_inodes} inodes free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="claim",
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=(Limit(metric("volume.healthy"), 0, 1, above=False),),
        says="its CSI driver says that the volume of claim {place} is not well",
        cleared="its CSI driver holds the volume of claim {place} for well again",
        hold=Hold(2),
        clear=Hold(2),
        entity="claim",
    ),
)
