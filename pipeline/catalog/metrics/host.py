"""The machine, and the control groups on it."""

from pipeline.catalog.metric import F64, U32, U64, C, Family, G, Metric

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
        Metric("host.clock_offset", "s", G, F64, -1e10, 1e10, "How far the clock is ahead of ingest's, negative: behind"),
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
