"""File systems and disks."""

from pipeline.catalog.metric import F64, U8, U32, U64, C, Family, G, Metric

MOUNT = Family(
    "mount",
    ("node", "mount_point", "source"),
    "A mounted file system",
    (
        Metric("mount.size", "By", G, U64, 0, None, "Size of the file system"),
        Metric("mount.free", "By", G, U64, 0, None, "Free for users that are not root"),
        Metric("mount.inodes", "1", G, U64, 0, None, "Inodes in all"),
        Metric("mount.inodes_free", "1", G, U64, 0, None, "Inodes free"),
        Metric("mount.read_only", "1", G, U8, 0, 1, "1 where the file system is mounted read-only"),
        Metric("mount.probe.ok", "1", G, U8, 0, 1, "1 where the last probe returned in time, 0 where it hung or failed"),
        Metric("mount.probe.time", "s", G, F64, 0, None, "How long the last probe took; of a hung one, how long it has been waiting"),
        Metric("mount.write.ok", "1", G, U8, 0, 1, "1 where a small file could be written, read back and deleted in time, 0 where not"),
        Metric("mount.write.time", "s", G, F64, 0, None, "How long that took; of a write that hangs, how long it has been waiting"),
        Metric("mount.write.sync", "s", G, F64, 0, None, "How long it took to have that file on stable storage"),
        Metric("mount.write.read", "s", G, F64, 0, None, "How long it took to read that file back"),
        Metric("mount.write.errno", "1", G, U32, 0, 65_535, "The error number with which that failed; 0 where it did not"),
        Metric("mount.fuse.waiting", "1", G, U32, 0, None, "Requests that wait for the server of this FUSE file system"),
        Metric("mount.fuse.stalled", "s", G, F64, 0, None, "For how long requests have waited and were not seen to become fewer"),
    ),
)

DISK = Family(
    "disk",
    ("node", "disk"),
    "A block device",
    (
        Metric("disk.present", "1", G, U8, 0, 1, "1 where the kernel lists the disk, 0 where it did so until lately"),
        Metric("disk.reads", "1", C, U64, 0, None, "Reads completed"),
        Metric("disk.read", "By", C, U64, 0, None, "Bytes read"),
        Metric("disk.read.time", "s", C, F64, 0, None, "Time spent in reads, summed over requests"),
        Metric("disk.writes", "1", C, U64, 0, None, "Writes completed"),
        Metric("disk.written", "By", C, U64, 0, None, "Bytes written"),
        Metric("disk.write.time", "s", C, F64, 0, None, "Time spent in writes, summed over requests"),
        Metric("disk.io.time", "s", C, F64, 0, None, "Time in which at least one request was in flight"),
        Metric("disk.in_flight", "1", G, U32, 0, None, "Requests in flight now"),
        Metric("disk.errors", "1", C, U64, 0, None, "Commands that the disk ended with an error"),
        Metric(
            "disk.online", "1", G, U8, 0, 1, "1 where the kernel holds the disk for usable, 0 where it is offline or its controller dead"
        ),
    ),
)

DISK_HEALTH = Family(
    "disk_health",
    ("node", "disk"),
    "An NVMe controller's own word on its health",
    (
        Metric("disk_health.degraded", "1", G, U8, 0, 1, "1 where it says that it is unfit: no spare, unreliable, read-only or no backup"),
        Metric("disk_health.hot", "1", G, U8, 0, 1, "1 where it says that its temperature is beyond its limits"),
        Metric("disk_health.temperature", "Cel", G, F64, -60, 200, "Its temperature"),
        Metric("disk_health.wear", "1", G, F64, 0, 2.55, "Share of its rated endurance that is used up; may pass 1"),
        Metric("disk_health.spare", "1", G, F64, 0, 1, "Share of its spare blocks that is left"),
        Metric("disk_health.spare_limit", "1", G, F64, 0, 1, "Share of spare blocks below which it holds itself for unfit"),
        Metric("disk_health.media_errors", "1", C, U64, 0, None, "Data that could not be read or kept, in its whole life"),
        Metric("disk_health.read", "By", C, U64, 0, None, "Bytes read in its whole life"),
        Metric("disk_health.written", "By", C, U64, 0, None, "Bytes written in its whole life"),
        Metric("disk_health.unsafe_shutdowns", "1", C, U64, 0, None, "Times that it lost its power unannounced"),
    ),
)

QUOTA = Family(
    "quota",
    ("node", "folder", "of"),
    "What a user, group, project or folder may keep where `agent.probe_paths` says",
    (
        Metric("quota.used", "By", G, U64, 0, None, "Bytes that are kept"),
        Metric("quota.limit", "By", G, U64, 0, None, "Bytes that may be; absent where there is no limit"),
        Metric("quota.files", "1", G, U64, 0, None, "Files and folders that are kept"),
        Metric("quota.files.limit", "1", G, U64, 0, None, "Files and folders that may be; absent where there is no limit"),
    ),
)
