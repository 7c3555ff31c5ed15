"""The machine: CPU, memory, pressure, shared memory."""

import math
from collections.abc import Iterator
from datetime import datetime

from exporters.collector import Reading, Site
from exporters.sources import procfs
from pipeline.catalog.metrics import HOST


class HostCollector:
    """One reading, of the machine at `site`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The machine's reading; what the kernel does not tell is absent."""
        proc = self._site.proc
        cpu, memory = procfs.cpu(proc, self._site.ticks), procfs.memory(proc)
        stall = {resource: procfs.pressure(proc, resource) for resource in ("cpu", "memory", "io")}
        shm_total, shm_free = self._shm()
        boot = procfs.passed(cpu.boot, now.timestamp())
        yield Reading(
            HOST,
            {"node": self._site.node},
            {
                "host.load1": procfs.load1(proc),
                "host.cpu.count": cpu.online,
                "host.cpu.busy": cpu.busy,
                "host.cpu.iowait": cpu.iowait,
                "host.memory.total": memory.total,
                "host.memory.available": memory.available,
                "host.shm.total": shm_total,
                "host.shm.free": shm_free,
                "host.boot": boot if cpu.boot is None or boot is not None else math.nan,  # no time that has come: refused, and counted
                "host.pressure.cpu.some": stall["cpu"].some,
                "host.pressure.memory.some": stall["memory"].some,
                "host.pressure.memory.full": stall["memory"].full,
                "host.pressure.io.some": stall["io"].some,
                "host.pressure.io.full": stall["io"].full,
                "host.oom_kills": procfs.oom_kills(proc),
                "host.clock_offset": self._site.clock_offset(),
            },
            since=boot,
        )

    def _shm(self) -> tuple[int | None, int | None]:
        """Size and free bytes; memory cannot hang, so the kernel is asked without a probe."""
        try:
            usage = self._site.usage(str(self._site.shm))
        except OSError:
            return None, None
        return usage.size, usage.free
