"""What the kernel's log tells, through the leader's tick: which fault each line opens, on what, and when it is over."""

from typing import Any

import pytest

from pipeline.catalog import events
from pipeline.catalog.devices import device_id
from pipeline.catalog.event import EventKind
from pipeline.catalog.metrics import HOST
from pipeline.catalog.rules import Happened
from pipeline.records import Event, FindingTransition, IncidentTransition

GPU = "GPU-11111111-2222-3333-4444-555555555555"


class Node:
    """A node whose agent tells of the machine every ten seconds, and of what its kernel logs."""

    def __init__(self, world: Any, name: str = "node-a") -> None:
        self.world, self.name, self.number = world, name, 0

    def passes(self, times: int = 1) -> None:
        for _ in range(times):
            self.world.wait(10)
            self.number += 1
            row = {"device_id": device_id(HOST, {"node": self.name}), "ts": self.world.now, "node": self.name, "load1": 1}
            self.world.store.insert_rows("host_raw", [row], token=f"{self.name}:{self.number}")
            self.world.tick()

    def tells(self, kind: EventKind, code: str = "", *, device: str = "", rank: int | None = None, **attrs: str) -> None:
        self.number += 1
        who = {"run": "r", "rank": rank} if rank is not None else {}
        self.world.put(
            Event(
                id=f"{self.name}-{self.number}",
                at=self.world.now,
                kind=kind.name,
                layer=kind.layer.value,
                severity=kind.severity.value,
                node=self.name,
                device=device,
                code=code,
                message=f"line {self.number}",
                attrs=attrs,
                **who,
            )
        )

    def xid(self, code: int, uuid: str = GPU, **attrs: str) -> None:
        self.tells(events.XID, str(code), device=uuid, uuid=uuid, pci="0000:3b:00.0", **attrs)


@pytest.fixture
def node(world: Any) -> Node:
    made = Node(world)
    made.passes(2)
    return made


def findings(world: Any) -> list[FindingTransition]:
    return world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")


def incidents(world: Any) -> list[IncidentTransition]:
    return world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")


def running(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.steps(60)
    world.ingest()
    world.beat()
    for rank in (0, 1):
        world.live(rank, step=61, completed=60, phase="forward", since=world.now)


def test_a_gpu_that_fell_off_opens_one_incident_of_it_and_is_over_after_a_quiet_minute(world: Any, node: Node) -> None:
    node.xid(79)
    world.wait(0.5)
    world.tick()
    (incident,) = incidents(world)
    assert (incident.fault, incident.layer, incident.node, incident.device) == ("gpu_fell_off_bus", "compute", "node-a", GPU)
    (finding,) = findings(world)
    assert finding.key == f"fault_rule/gpu_fell_off_bus|node:node-a/uuid:{GPU}|"
    assert finding.reason == f"XID 79 on GPU {GPU} at 0000:3b:00.0: line 3"
    node.passes(3)
    node.xid(79)  # the same again: it is not quiet yet
    node.passes(6)
    assert [f.new_state for f in findings(world)] == ["open"]
    node.passes(1)
    assert [(f.new_state, f.reason) for f in findings(world)[1:]] == [("cleared", "no such XID for a minute")]
    node.passes(7)
    assert incidents(world)[-1].new_state == "resolved" and len({i.incident for i in incidents(world)}) == 1


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (48, "gpu_ecc_uncorrectable"),
        (94, "gpu_ecc_uncorrectable"),
        (95, "gpu_ecc_uncorrectable"),
        (64, "gpu_ecc_uncorrectable"),  # the remap failed: hardware
        (63, "gpu_row_remap_pending"),  # a remap waits for a reset: no hardware to be changed
        (74, "gpu_nvlink_fault"),
        (149, "gpu_nvlink_fault"),
        (119, "gpu_driver_hang"),
        (120, "gpu_driver_hang"),
        (31, None),  # no run is there: somebody tries something out
        (45, None),
        (154, None),
        (92, "gpu_hbm_degrading"),
        (160, "gpu_hbm_degrading"),
        (161, "gpu_hbm_degrading"),
    ],
)
def test_an_xid_opens_the_fault_that_its_number_stands_for(world: Any, node: Node, code: int, fault: str | None) -> None:
    node.xid(code, action="RESET_GPU")
    world.tick()
    assert [f.fault for f in findings(world)] == ([fault] if fault else [])


def test_a_link_error_that_the_catalogue_calls_harmless_opens_nothing(world: Any, node: Node) -> None:
    node.xid(149, action="IGNORE", subcode="NETIR_BER_EVENT")
    node.tells(events.SXID, "20009", device="0000:c1:00.0", fatal="Non-fatal")
    node.tells(events.SXID, "20009", device="0000:c1:00.0")
    world.tick()
    assert not findings(world)
    node.tells(events.SXID, "22011", device="0000:c1:00.0", fatal="Fatal")
    world.tick()
    assert [(f.fault, f.device) for f in findings(world)] == [("gpu_nvlink_fault", "0000:c1:00.0")]


def test_two_gpus_are_two_findings_and_an_illegal_access_under_a_run_is_told(world: Any, node: Node) -> None:
    running(world)
    node.xid(31, pid="7")
    node.xid(31, pid="7")
    node.xid(13, uuid="GPU-2")
    world.tick()
    assert sorted((f.fault, f.device) for f in findings(world)) == [("gpu_illegal_access", GPU), ("gpu_illegal_access", "GPU-2")]


def test_a_killed_process_is_named_with_its_rank(world: Any, node: Node) -> None:
    node.tells(events.OOM_VICTIM, "child", rank=3, pid="4712", comm="pt_data_worker")
    world.tick()
    (finding,) = findings(world)
    assert finding.fault == "host_oom_kill"
    assert finding.reason == "process 4712 (pt_data_worker) of rank 3 of run r was killed for want of memory"


def test_a_kill_that_the_log_and_the_count_both_tell_of_is_one_finding_in_the_more_exact_words(world: Any, node: Node) -> None:
    node.tells(events.OOM_KILL, "cgroup", cgroup="/job/a")
    node.tells(events.OOM_VICTIM, "rank", rank=0, pid="4711", comm="python")
    world.tick()
    (finding,) = findings(world)
    assert finding.reason.startswith("process 4711 (python) of rank 0")


def test_a_killed_process_that_is_no_ranks_matters_under_a_run(world: Any, node: Node) -> None:
    node.tells(events.OOM_VICTIM, "node", pid="9", comm="sshd")
    world.tick()
    assert not findings(world)


@pytest.mark.parametrize(
    ("kind", "code", "fault"),
    [
        (events.HUNG_TASK, "task", "hung_task"),
        (events.HUNG_TASK, "soft_lockup", "hung_task"),
        (events.MACHINE_CHECK, "uncorrected", "machine_check"),
        (events.MACHINE_CHECK, "corrected", None),
        (events.THERMAL, "cpu", "machine_check"),
        (events.THERMAL, "adapter", None),
        (events.KERNEL_OOPS, "panic", "kernel_panic_reboot"),
        (events.KERNEL_CRASHED, "panic", "kernel_panic_reboot"),
        (events.KERNEL_CRASHED, "oops", None),  # the node went on
        (events.IO_ERROR, "io", None),  # the disks' own rules say
        (events.LINK_CHANGED, "down", None),
        (events.CLOCK_SKEWED, "ahead", "clock_skew"),
    ],
)
def test_a_line_opens_its_fault_on_its_node(world: Any, node: Node, kind: EventKind, code: str, fault: str | None) -> None:
    node.tells(kind, code, offset="7.0")
    world.tick()
    assert [(f.fault, f.node, f.device) for f in findings(world)] == ([(fault, "node-a", "")] if fault else [])


def test_errors_that_were_corrected_are_a_fault_at_the_tenth(world: Any, node: Node) -> None:
    for n in range(10):
        node.tells(events.MACHINE_CHECK, "corrected")
        world.tick()
        assert len(findings(world)) == (n == 9)
        world.wait(1)


def test_a_file_system_that_made_itself_read_only_is_named_by_its_mount_point(world: Any, node: Node) -> None:
    node.tells(events.REMOUNTED_READ_ONLY, device="/data", mount_point="/data", source="/dev/sda2")
    world.tick()
    (finding,) = findings(world)
    assert (finding.key, finding.device) == ("fault_rule/filesystem_read_only|node:node-a/mount_point:/data|", "/data")


@pytest.mark.parametrize(("code", "fault"), [("shutdown", "mount_stale_or_gone"), ("error", "disk_failing")])
def test_a_file_system_that_is_damaged_or_shut_itself_down_is_named_by_its_mount_point(
    world: Any, node: Node, code: str, fault: str
) -> None:
    node.tells(events.FILESYSTEM_ERROR, code, device="/dev/sdb1", source="/dev/sdb1")
    node.tells(events.FILESYSTEM_ERROR, code, device="/boot/efi", mount_point="/boot/efi")
    world.tick()
    assert not findings(world), "what is mounted nowhere, or is plumbing, holds no checkpoint"
    node.tells(events.FILESYSTEM_ERROR, code, device="/data", mount_point="/data", source="/dev/sda2")
    world.tick()
    assert [(f.fault, f.device) for f in findings(world)] == [(fault, "/data")]
    node.passes(7)
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]


@pytest.mark.parametrize("code", ["nonfatal", "fatal"])
def test_an_error_on_the_bus_of_a_gpu_is_a_fault_and_of_another_device_none(world: Any, node: Node, code: str) -> None:
    node.tells(events.PCIE_ERROR, code, device="0000:5e:00.0", pci="0000:5e:00.0", error_type="Data Link Layer")
    world.tick()
    assert not findings(world)
    node.tells(events.PCIE_ERROR, code, device=GPU, uuid=GPU, pci="0000:3b:00.0", error_type="Transaction Layer")
    world.tick()
    assert [(f.fault, f.device) for f in findings(world)] == [("gpu_pcie_degraded", GPU)]


def test_errors_that_a_gpus_bus_corrects_are_a_fault_at_the_tenth_within_ten_minutes(world: Any, node: Node) -> None:
    for n in range(10):
        node.tells(events.PCIE_ERROR, "corrected", device=GPU, uuid=GPU, pci="0000:3b:00.0")
        world.tick()
        assert len(findings(world)) == (n == 9)
        world.wait(2)


def test_a_gpu_that_its_driver_could_not_start_is_gone_for_whoever_wants_it(world: Any, node: Node) -> None:
    node.tells(events.GPU_INIT_FAILED, device=GPU, uuid=GPU, pci="0000:3b:00.0")
    world.tick()
    (finding,) = findings(world)
    assert (finding.fault, finding.device) == ("gpu_fell_off_bus", GPU)
    assert finding.reason == f"the driver could not start GPU {GPU} at 0000:3b:00.0: line 3"


def test_of_several_codes_one_must_fit() -> None:
    when = Happened(events.XID, codes=frozenset({"48", "94"}))
    assert [when.fits("xid", code) for code in ("48", "94", "9", "")] == [True, True, False, False]
    assert not when.fits("sxid", "48")
    assert Happened(events.XID).fits("xid", "1") and Happened(events.XID, code="1").fits("xid", "1")


def test_a_gpu_that_fell_off_the_bus_is_one_incident_with_all_that_came_of_it_and_another_gpu_is_another(world: Any, node: Node) -> None:
    """Its loss is told by the kernel and by the agent, its links fail with it, and its driver hangs on it."""
    node.xid(79)
    node.tells(events.GPU_LOST, device=GPU, uuid=GPU, pci="0000:3b:00.0")
    world.tick()
    world.wait(3)
    node.xid(74)
    node.xid(119)
    node.xid(79, uuid="GPU-2")
    world.tick()
    node.passes(1)
    mine = {(f.fault, f.device): f.incident for f in findings(world)}
    assert {fault for fault, device in mine if device == GPU} == {"gpu_fell_off_bus", "gpu_nvlink_fault", "gpu_driver_hang"}
    assert {device for _, device in mine} == {GPU, "GPU-2"}
    last = {i.incident: i for i in incidents(world)}
    assert sorted((i.fault, i.device, i.node) for i in last.values()) == [
        ("gpu_fell_off_bus", GPU, "node-a"),
        ("gpu_fell_off_bus", "GPU-2", "node-a"),
    ]
    assert len({incident for (_, device), incident in mine.items() if device == GPU}) == 1
