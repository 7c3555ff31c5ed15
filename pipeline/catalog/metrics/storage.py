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
    ),
)

DISK = Family(
    "disk",
    ("node", "disk"),
    "A block device",
    (
        Metric("disk.reads", "1", C, U64, 0, None, "Reads completed"),
        Metric("disk.read", "By", C, U64, 0, None, "Bytes read"),
        Metric("disk.read.time", "s", C, F64, 0, None, "Time spent in reads, summed over requests"),
        Metric("disk.writes", "1", C, U64, 0, None, "Writes completed"),
        Metric("disk.written", "By", C, U64, 0, None, "Bytes written"),
        Metric("disk.write.time", "s", C, F64, 0, None, "Time spent in writes, summed over requests"),
        Metric("disk.io.time", "s", C, F64, 0, None, "Time in which at least one request was in flight"),
        Metric("disk.in_flight", "1", G, U32, 0, None, "Requests in flight now"),
    ),
)
