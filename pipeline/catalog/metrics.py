"""Every metric, once: name, unit, kind, column type, valid range and help on one line.

A *family* is one wide table: a row is one device's readings at one time. The column is the metric's
name without its family, dots as underscores. The table, its view, the OTLP message and the
Prometheus page are all generated from here.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a value behaves over time."""

    GAUGE = "gauge"
    COUNTER = "counter"


class ColumnType(StrEnum):
    """The physical ClickHouse type behind the view; every column is Nullable, since absent is NULL."""

    F64 = "Float64"
    U64 = "UInt64"
    U32 = "UInt32"
    U8 = "UInt8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity in base units. `low` and `high` bound what is believed (None: no bound)."""

    name: str
    unit: str  # UCUM: By, s, 1, Hz, W, Cel; "1" is a ratio or a count
    kind: Kind
    type: ColumnType
    low: float | None
    high: float | None
    help: str
    width: int = 64  # bits of a counter


@dataclass(frozen=True, slots=True)
class Family:
    """The metrics of one kind of device, and the attributes that identify such a device."""

    name: str
    identity: tuple[str, ...]
    help: str
    metrics: tuple[Metric, ...]

    def column(self, metric: Metric) -> str:
        """The column of `metric` in this family's table."""
        return metric.name.removeprefix(self.name + ".").replace(".", "_")


G, C = Kind.GAUGE, Kind.COUNTER
F64, U64, U32, U8 = ColumnType.F64, ColumnType.U64, ColumnType.U32, ColumnType.U8

HOST = Family(
    "host",
    ("node",),
    "A machine",
    (
        Metric("host.load1", "1", G, F64, 0, 1e6, "Run queue, averaged over one minute"),
        Metric("host.cpu.count", "1", G, U32, 1, 65_536, "Logical CPUs online"),
        Metric("host.cpu.busy", "s", C, F64, 0, None, "CPU time spent on anything but idle and iowait, all CPUs together"),
        Metric("host.cpu.iowait", "s", C, F64, 0, None, "CPU time spent waiting for I/O, all CPUs together"),
        Metric("host.memory.total", "By", G, U64, 0, None, "Usable memory"),
        Metric("host.memory.available", "By", G, U64, 0, None, "Memory that could be given out without swapping"),
        Metric("host.shm.total", "By", G, U64, 0, None, "Size of /dev/shm"),
        Metric("host.shm.free", "By", G, U64, 0, None, "Free in /dev/shm; data loaders die when it is full"),
        Metric("host.boot", "s", G, F64, 0, None, "Time of boot, seconds since 1970"),
        Metric("host.pressure.cpu.some", "s", C, F64, 0, None, "Time in which a task waited for a CPU"),
        Metric("host.pressure.memory.some", "s", C, F64, 0, None, "Time in which a task waited for memory"),
        Metric("host.pressure.memory.full", "s", C, F64, 0, None, "Time in which all tasks waited for memory"),
        Metric("host.pressure.io.some", "s", C, F64, 0, None, "Time in which a task waited for I/O"),
        Metric("host.pressure.io.full", "s", C, F64, 0, None, "Time in which all tasks waited for I/O"),
        Metric("host.oom_kills", "1", C, U64, 0, None, "Processes killed for want of memory since boot"),
    ),
)

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

CGROUP = Family(
    "cgroup",
    ("node", "cgroup", "run"),
    "The control group that ranks of a run are in",
    (
        Metric("cgroup.oom_kills", "1", C, U64, 0, None, "Processes of the group killed for want of memory"),
        Metric("cgroup.memory.used", "By", G, U64, 0, None, "Memory charged to the group"),
        Metric("cgroup.memory.limit", "By", G, U64, 0, None, "Memory that the group may use; absent where there is no limit"),
    ),
)

AGENT = Family(
    "agent",
    ("node", "collector"),
    "A collector of the node's agent",
    (
        Metric("agent.collect.ok", "1", G, U8, 0, 1, "1 where the collector's last pass gave readings"),
        Metric("agent.collect.time", "s", G, F64, 0, None, "How long the last pass took"),
        Metric("agent.rejected", "1", C, U64, 0, None, "Readings left out since start: beyond their valid range"),
        Metric("agent.last_success", "s", G, F64, 0, None, "When the collector last gave readings, seconds since 1970"),
    ),
)

FAMILIES: tuple[Family, ...] = (HOST, MOUNT, DISK, CGROUP, AGENT)
BY_NAME: dict[str, tuple[Family, Metric]] = {m.name: (f, m) for f in FAMILIES for m in f.metrics}
