"""What is gone tells nothing of itself: the last device of a family, through its real collector, the store and the leader's tick."""

import shutil
from collections.abc import Callable, Mapping
from ctypes import CDLL
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exporters.collector import Collector, Keeps, MayBeAbsent, Reading, Site, Table
from exporters.encode import accept
from exporters.gpu.collector import GpuCollector
from exporters.judge import Judge
from exporters.network.netdev import NetdevCollector
from exporters.network.rdma import RdmaCollector
from exporters.passes import Outcome
from exporters.registry import COLLECTORS
from exporters.sending import wire
from exporters.sending.metrics import MetricMessages
from exporters.sources.storage.probes import ThreadProbes, Usage
from exporters.storage.disks import DiskCollector
from exporters.storage.mounts import MountCollector
from pipeline.catalog.metrics import HOST
from pipeline.catalog.rules import RULES, Missing
from pipeline.otlp import decode as otlp
from pipeline.records import FindingTransition, IncidentTransition, RunTransition

MAKE: dict[str, Callable[[Site], Collector]] = {
    "gpu": GpuCollector,
    "rdma_port": RdmaCollector,
    "netdev": NetdevCollector,
    "disk": DiskCollector,
    "mount": MountCollector,
}
UUID = "GPU-00000000-0000-0000-0000-000000000001"
BUSY = "8 0 sda 100 5 2048 1500 50 7 4096 2500 2 3600 4000\n"
PORT = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}


class Machine:
    """A node made of files with one device of a kind; its agent's collector of that kind reads it every ten seconds."""

    def __init__(self, world: Any, root: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.root, self.kind, self.kept, self.number = world, root, kind, {}, 0
        self.judge = Judge("node-a")
        for name in ("proc/self", "proc/sys/kernel/random", "sys/bus/pci/devices"):
            (root / name).mkdir(parents=True)
        self.write("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\nbtime 1700000000\n")
        self.write("proc/diskstats", "")
        self.write("proc/self/mountinfo", "")
        monkeypatch.setenv("FAKE_NVML", str(root / "nvml"))
        self.write("nvml", "# no GPU\n")
        self.start()

    def start(self) -> None:
        """A new agent, which knows what the one before kept."""
        site = Site(
            "node-a",
            proc=self.root / "proc",
            sys=self.root / "sys",
            probes=lambda: ThreadProbes(lambda _: Usage(1 << 40, 1 << 39, 1000, 900)),
            ethtool=lambda _: {},
            kept=self.kept,
        )
        self.collector = MAKE[self.kind](site)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def remove(self, name: str) -> None:
        shutil.rmtree(self.root / name)

    def passes(self, times: int = 1) -> None:
        """`times` passes, each followed by a tick of the leader."""
        for _ in range(times):
            self.world.wait(10)
            self._send([Reading(HOST, {"node": "node-a"}, {"host.load1": 1})])
            error, found, rejected = "", [], 0
            try:
                found, rejected = accept(one for one in self.collector.collect(self.world.now) if isinstance(one, Reading | Table))
            except OSError as e:
                error = str(e)
            absent = self.collector.absent() if not found and not error and isinstance(self.collector, MayBeAbsent) else ""
            self.judge.failed(Outcome(self.kind, found, rejected, 0.01, error, absent=absent), self.world.now.timestamp())
            self._put(found)
            self._send(self.judge.readings(self.world.now.timestamp()))
            if isinstance(self.collector, Keeps):
                self.kept = {**self.kept, **self.collector.kept()}
            self.world.tick()

    def _send(self, readings: Any) -> None:
        self._put(accept(readings)[0])

    def _put(self, accepted: Any) -> None:
        body = wire.metrics_request(wire.resource({"host.name": "node-a"}), MetricMessages().encode(accepted, self.world.now))
        read = otlp.decode(otlp.Signal.METRICS, otlp.ContentType.PROTOBUF, body, self.world.now)
        assert read.rejected == 0, read.message()
        for table, rows in read.rows.items():
            self.number += 1
            self.world.store.insert_rows(table, rows, token=f"{self.kind}:{self.number}")

    # --- what is there ---

    def gpu(self, there: bool) -> None:
        lines = {"order": "0", "0.nvmlDeviceGetUUID": UUID, "0.nvmlDeviceGetPciInfo_v3": "00000000:1B:00.0"}
        self.write("nvml", "".join(f"{key} {value}\n" for key, value in lines.items()) if there else "# no GPU\n")

    def port(self, there: bool, **changes: str) -> None:
        for name, text in (PORT | changes).items() if there else ():
            self.write(f"sys/class/infiniband/mlx5_0/ports/1/{name}", f"{text}\n")
        if not there:
            self.remove("sys/class/infiniband/mlx5_0")

    def interface(self, there: bool, uevent: str = "PCI_SLOT_NAME=0000:41:00.0\n") -> None:
        for name, text in {"carrier": "1\n", "speed": "25000\n", "device/uevent": uevent}.items() if there else ():
            self.write(f"sys/class/net/eth0/{name}", text)
        if not there:
            self.remove("sys/class/net/eth0")

    def disk(self, there: bool, model: str = "FAST SSD 960") -> None:
        self.write("proc/diskstats", BUSY if there else "")
        if there:
            self.write("sys/block/sda/device/model", f"{model}\n")
            self.write("sys/block/sda/device/state", "running\n")
        else:
            self.remove("sys/block/sda")

    def mount(self, there: bool) -> None:
        self.write("proc/self/mountinfo", "36 35 8:1 / /data rw - ext4 /dev/sda1 rw\n" if there else "")


@dataclass(frozen=True)
class Kind:
    """What is taken away of a family, and the incident that it is to be."""

    family: str
    put: Callable[[Machine, bool], None]
    fault: str
    device: str
    run: str = ""


KINDS = (
    Kind("gpu", Machine.gpu, "gpu_fell_off_bus", UUID),
    Kind("rdma_port", Machine.port, "link_down", "mlx5_0:1"),
    Kind("netdev", Machine.interface, "link_down", "eth0"),
    Kind("disk", Machine.disk, "disk_failing", "sda"),
    Kind("mount", Machine.mount, "mount_stale_or_gone", "/data", "r"),
)


@pytest.fixture
def machine(world: Any, tmp_path: Path, fake_nvml: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Machine]:
    CDLL(str(fake_nvml / "libnvidia-ml.so.1"))  # a library that is loaded already is found by its name
    return lambda kind: Machine(world, tmp_path, kind, monkeypatch)


def found(world: Any) -> list[tuple[str, str, str]]:
    rows = world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")
    return [(f.fault, f.device, f.new_state) for f in rows]


def incidents(world: Any) -> Mapping[str, IncidentTransition]:
    rows = world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
    return {row.incident: row for row in rows}


def with_checkpoints(world: Any) -> None:
    began = {"old_state": "", "new_state": "started", "reason": "", "actor": "launcher", "at": world.now, "run": "r", "node": "node-a"}
    world.put(RunTransition(**began, checkpoints="/data/ckpt"))
    world.attempt("starting")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.family)
def test_the_last_device_of_a_family_that_is_gone_is_one_incident_until_it_is_back(
    world: Any, machine: Callable[[str], Machine], kind: Kind
) -> None:
    node = machine(kind.family)
    if kind.run:
        with_checkpoints(world)
    kind.put(node, True)
    node.passes(3)
    assert not found(world)
    kind.put(node, False)
    node.passes(1 if kind.family in ("gpu", "mount") else 2)  # of the others one look may lie
    assert found(world) == [(kind.fault, kind.device, "open")]
    (incident,) = incidents(world).values()
    assert (incident.node, incident.device, incident.run, incident.new_state) == ("node-a", kind.device, kind.run, "open")
    node.passes(8)
    node.start()  # neither a new agent nor a new leader takes silence for health
    world.restart_jobs()
    node.passes(5)
    assert found(world) == [(kind.fault, kind.device, "open")]
    kind.put(node, True)
    node.passes(4)
    assert found(world)[1:] == [(kind.fault, kind.device, "cleared")]
    node.passes(7)
    assert [one.new_state for one in incidents(world).values()] == ["resolved"]


def test_a_port_that_is_down_and_then_gone_is_the_same_incident_and_down_again_is_no_end_of_it(
    world: Any, machine: Callable[[str], Machine]
) -> None:
    node = machine("rdma_port")
    node.port(True)
    node.passes(3)
    node.port(True, state="1: DOWN")
    node.passes(3)
    node.port(False)
    node.passes(5)
    node.port(True, state="1: DOWN")
    node.passes(4)
    assert found(world) == [("link_down", "mlx5_0:1", "open")]
    node.port(True)
    node.passes(3)
    assert found(world)[1:] == [("link_down", "mlx5_0:1", "cleared")]
    assert len(incidents(world)) == 1


def test_an_incident_is_not_over_because_its_collector_fails_and_the_leader_is_new(world: Any, machine: Callable[[str], Machine]) -> None:
    node = machine("gpu")
    node.gpu(True)
    node.passes(3)
    node.gpu(False)
    node.passes(2)
    node.write("nvml", "-1.nvmlDeviceGetCount_v2 !9\n-1.nvmlInit !9\n")  # the driver was unloaded: nobody can say what the GPU is like
    (node.root / "sys/bus/pci/devices/0000:1b:00.0").mkdir()
    node.passes(2)
    world.restart_jobs()
    node.passes(8)
    assert found(world) == [("gpu_fell_off_bus", UUID, "open")], "the node tells of itself, and nothing of its GPU"


@pytest.mark.parametrize("run", [True, False])
def test_a_driver_that_is_gone_under_a_run_is_one_incident_of_its_node_and_without_a_run_none(
    world: Any, machine: Callable[[str], Machine], run: bool
) -> None:
    node = machine("gpu")
    if run:
        with_checkpoints(world)
    node.gpu(True)
    node.passes(3)
    node.write("nvml", "-1.nvmlDeviceGetCount_v2 !9\n-1.nvmlInit !9\n")
    (node.root / "sys/bus/pci/devices/0000:1b:00.0").mkdir()
    node.passes(6)
    assert found(world) == ([("gpu_driver_hang", "", "open")] if run else [])
    node.gpu(True)
    node.passes(3)
    assert found(world)[1:] == ([("gpu_driver_hang", "", "cleared")] if run else [])


def test_a_file_system_that_was_full_and_is_no_longer_mounted_is_not_full_also_where_it_was_the_last(
    world: Any, machine: Callable[[str], Machine]
) -> None:
    node = machine("mount")
    full = ThreadProbes(lambda _: Usage(1 << 40, 0, 1000, 900))
    node.collector = MountCollector(Site("node-a", proc=node.root / "proc", sys=node.root / "sys", probes=lambda: full))
    node.mount(True)
    node.passes(3)
    node.mount(False)
    node.passes(9)
    assert [one.new_state for one in incidents(world).values()] == ["resolved"]
    assert found(world) == [("filesystem_full", "/data", "open"), ("filesystem_full", "/data", "cleared")]


def test_a_port_that_never_ran_may_leave(world: Any, machine: Callable[[str], Machine]) -> None:
    node = machine("rdma_port")
    node.port(True, state="1: DOWN")
    node.passes(3)
    node.port(False)
    node.passes(4)
    assert not found(world)


@pytest.mark.parametrize("model", ["Amazon Elastic Block Store", "QEMU HARDDISK", "Virtual disk"])
def test_a_volume_that_a_cloud_takes_back_is_no_failing_disk(world: Any, machine: Callable[[str], Machine], model: str) -> None:
    node = machine("disk")
    node.disk(True, model)
    node.passes(3)
    node.disk(False)
    node.passes(4)
    assert not found(world)


def test_an_interface_that_was_given_to_a_container_is_no_fault_and_one_whose_device_left_the_bus_is(
    world: Any, machine: Callable[[str], Machine]
) -> None:
    node = machine("netdev")
    (node.root / "sys/bus/pci/devices/0000:41:00.0/driver").mkdir(parents=True)
    node.interface(True)
    node.passes(3)
    node.interface(False)
    node.passes(4)
    assert not found(world), "the kernel still drives it: another network namespace has it"
    node.remove("sys/bus/pci/devices/0000:41:00.0")
    node.passes(2)
    assert found(world) == [("link_down", "eth0", "open")]


def test_each_family_that_a_rule_may_miss_is_read_by_a_collector_of_its_name() -> None:
    missed = {rule.when.family.name for rule in RULES if isinstance(rule.when, Missing)}
    assert missed and missed <= {entry.name for entry in COLLECTORS if entry.name in {family.name for family in entry.families}}
