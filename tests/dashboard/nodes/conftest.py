"""What agents send about machines, as ingest stores it: the inventory and each family's readings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import AGENT, DISK, HOST, MOUNT, Family
from pipeline.records import FindingTransition, IncidentTransition, RunTransition
from pipeline.store import Store

GB = 10**9
AGES = (100.0, 60.0, 20.0, 3.0)  # seconds before now of a well agent's readings


@dataclass
class Machines:
    """Writes readings as of `now`. Every call has its own tokens."""

    store: Store
    now: datetime
    calls: int = 0

    def back(self, seconds: float) -> datetime:
        """`seconds` before now."""
        return self.now - timedelta(seconds=seconds)

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows of any table."""
        self.calls += 1
        self.store.insert_rows(table, rows, token=f"machines-{self.calls}")

    def device(
        self,
        family: Family,
        identity: Mapping[str, str],
        readings: Mapping[float, Mapping[str, Any]],
        more: Mapping[str, str] | None = None,
    ) -> None:
        """A device of the inventory with its readings, by their age in seconds; `more` are labels that do not identify it."""
        ident = device_id(family, identity)
        attrs = {k: v for k, v in identity.items() if k != "node"}
        name = " ".join(attrs.values()) or identity["node"]
        row = {"device_id": ident, "family": family.name, "node": identity["node"], "name": name, "seen_at": self.back(9000)}
        self.insert("devices", [row | {"attrs": attrs | dict(more or {})}])
        told = [{"device_id": ident, "ts": self.back(age), "node": identity["node"], **values} for age, values in readings.items()]
        if told:
            self.insert(f"{family.name}_raw", told)

    def host(self, node: str, *, ages: Sequence[float] = AGES, busy: float = 0.25, io: float = 0.0, cpus: int = 8, **more: Any) -> None:
        """A machine that is `busy` (a share of all its CPUs) and in which tasks wait for I/O for a share `io` of the time."""
        base = {"cpu_count": cpus, "memory_total": 64 * GB, "memory_available": 48 * GB, "load1": 2.0, "boot": 1.7e9}
        rows = {}
        for age in ages:
            up = 1e6 - age
            counters = {"cpu_busy": busy * cpus * up, "cpu_iowait": 0.01 * cpus * up, "pressure_cpu_some": 0.02 * up}
            counters |= {"pressure_memory_some": 0.0, "pressure_io_some": io * up}
            rows[age] = base | counters | more
        self.device(HOST, {"node": node}, rows)

    def mount(self, node: str, mount_point: str, used: float, *, ages: Sequence[float] = (3.0,), kind: str = "ext4", **more: Any) -> None:
        """A file system of 100 GB of which a share is used."""
        row = {"size": 100 * GB, "free": round((1 - used) * 100 * GB), "inodes": 1000, "inodes_free": 900, "read_only": 0, "probe_ok": 1}
        identity = {"node": node, "mount_point": mount_point, "source": f"/dev/{mount_point.strip('/') or 'root'}"}
        self.device(MOUNT, identity, {age: row | {"probe_time": 0.001} | more for age in ages}, {"type": kind})

    def disk(self, node: str, disk: str, *, read: float, written: float, ages: Sequence[float] = AGES) -> None:
        """A disk that moves so many bytes a second."""
        rows = {a: {"read": round(read * (1e6 - a)), "written": round(written * (1e6 - a)), "in_flight": 1} for a in ages}
        self.device(DISK, {"node": node, "disk": disk}, rows)

    def collector(self, node: str, name: str, *, ok: bool, ok_ago: float | None = 3.0) -> None:
        """A collector of the agent on `node`, which last gave readings `ok_ago` seconds ago (None: never)."""
        last = None if ok_ago is None else self.back(ok_ago).timestamp()
        values = {"collect_ok": int(ok), "collect_time": 0.02, "rejected": 0, "last_success": last}
        self.device(AGENT, {"node": node, "collector": name}, {3.0: values})

    def incident(self, incident: str, node: str, *, severity: str = "critical", title: str = "It burns", **more: Any) -> IncidentTransition:
        """An incident that opened 40 s ago."""
        usual: dict[str, Any] = {"old_state": "", "new_state": "open", "reason": "", "actor": "leader", "at": self.back(40)}
        usual |= {"key": incident, "fault": "filesystem_full", "layer": "storage", "detected_at": self.back(40)}
        return IncidentTransition(**usual | {"incident": incident, "node": node, "severity": severity, "title": title} | more)

    def finding(self, incident: str, node: str, **more: Any) -> FindingTransition:
        """An open finding of an incident."""
        usual: dict[str, Any] = {"old_state": "", "new_state": "open", "reason": "", "actor": "leader", "at": self.back(39)}
        usual |= {"finding": f"f-{incident}-{node}", "key": "k", "detector": "fault_rule", "fault": "link_down", "layer": "communication"}
        return FindingTransition(**usual | {"severity": "critical", "node": node, "incident": incident} | more)

    def started(self, run: str, node: str, *, ago: float = 600.0) -> RunTransition:
        """A run in progress."""
        return RunTransition(
            old_state="",
            new_state="started",
            reason="launched",
            actor="l",
            at=self.back(ago),
            run=run,
            node=node,
            command="train.py",
            ranks=4,
        )


@pytest.fixture
def machines(seed: Any) -> Machines:
    """Machines on this test's store, as of the same now as its seed."""
    return Machines(seed.store, seed.now)
