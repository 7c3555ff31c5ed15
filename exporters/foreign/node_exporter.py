"""node_exporter's names of the machine and its disks.

File systems are not among them: it does not say which mount is whose, and our own probe is what tells of one that hangs.
"""

from typing import Final

from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import DISK, HOST

_BUSY: Final = {"mode": "user|nice|system|irq|softirq|steal"}  # guest time is in user already
_PARTS: Final = r"(z?ram|loop|fd|sr|dm-|md)\d+|(h|s|v|xv)d[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)p\d+|nvme\d+c\d+n\d+"

NODE_EXPORTER: Final = (
    NameMap(
        "node_exporter",
        HOST,
        {},
        (
            Name("node_load1", "host.load1"),
            Name("node_cpu_seconds_total", "host.cpu.busy", where=_BUSY),
            Name("node_cpu_seconds_total", "host.cpu.iowait", where={"mode": "iowait"}),
            Name("node_memory_MemTotal_bytes", "host.memory.total"),
            Name("node_memory_MemAvailable_bytes", "host.memory.available"),
            Name("node_boot_time_seconds", "host.boot"),
            Name("node_pressure_cpu_waiting_seconds_total", "host.pressure.cpu.some"),
            Name("node_pressure_memory_waiting_seconds_total", "host.pressure.memory.some"),
            Name("node_pressure_memory_stalled_seconds_total", "host.pressure.memory.full"),
            Name("node_pressure_io_waiting_seconds_total", "host.pressure.io.some"),
            Name("node_pressure_io_stalled_seconds_total", "host.pressure.io.full"),
            Name("node_vmstat_oom_kill", "host.oom_kills"),
        ),
        since="node_boot_time_seconds",
    ),
    NameMap(
        "node_exporter",
        DISK,
        {"disk": ("{device}",)},
        (
            Name("node_disk_reads_completed_total", "disk.reads"),
            Name("node_disk_read_bytes_total", "disk.read"),
            Name("node_disk_read_time_seconds_total", "disk.read.time"),
            Name("node_disk_writes_completed_total", "disk.writes"),
            Name("node_disk_written_bytes_total", "disk.written"),
            Name("node_disk_write_time_seconds_total", "disk.write.time"),
            Name("node_disk_io_time_seconds_total", "disk.io.time"),
            Name("node_disk_io_now", "disk.in_flight"),
        ),
        never={"device": _PARTS},
        since="node_boot_time_seconds",
    ),
)
