"""Explicit faults through the leader's tick: readings and events as agents send them, against the real store."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import CGROUP, FAMILIES, GPU, HOST, MOUNT, Family
from pipeline.records import Event, FindingTransition, IncidentTransition, RunTransition

BY_FAMILY = {f.name: f for f in FAMILIES}
GB = 10**9


class Node:
    """An agent that sends a pass every ten seconds; `mounts` holds what it reads of each, None where it cannot tell."""

    def __init__(self, world: Any, name: str = "node-a") -> None:
        self.world, self.name, self.number = world, name, 0
        self.host: dict[str, float | None] = {"oom_kills": 3, "load1": 1, "cpu_count": 2, "boot": 1e9, "cpu_busy": 100}
        self.mounts: dict[str, dict[str, float | None]] = {"/": mount(), "/data": mount()}
        self.cgroups: dict[str, dict[str, float | None]] = {}

    def send(self) -> None:
        self._put(HOST, {"node": self.name}, self.host)
        for point, values in self.mounts.items():
            self._put(MOUNT, {"node": self.name, "mount_point": point, "source": "dev"}, values, {"type": "ext4"})
        for name, values in self.cgroups.items():
            self._put(CGROUP, {"node": self.name, "cgroup": name, "run": "r"}, values)

    def passes(self, times: int = 1, seconds: float = 10.0) -> None:
        """`times` passes, each followed by a tick of the leader."""
        for _ in range(times):
            self.world.wait(seconds)
            self.send()
            self.world.tick()

    def _put(self, family: Family, identity: dict[str, str], values: dict[str, float | None], more: dict[str, str] | None = None) -> None:
        self.number += 1
        number, token = device_id(family, identity), f"{self.name}:{self.number}"
        attributes = {k: v for k, v in identity.items() if k != "node"} | (more or {})
        device = {
            "device_id": number,
            "family": family.name,
            "node": self.name,
            "name": "x",
            "attrs": attributes,
            "seen_at": self.world.now,
        }
        self.world.store.insert_rows("devices", [device], token="d" + token)
        row = {"device_id": number, "ts": self.world.now, "node": self.name, **values}
        self.world.store.insert_rows(f"{family.name}_raw", [row], token="r" + token)


def mount(free: float | None = 500 * GB, read_only: int = 0, ok: int | None = 1, time: float | None = 0.001) -> dict[str, float | None]:
    sizes = {"size": 1000 * GB, "free": free, "inodes": 1000, "inodes_free": 900}
    gone = dict.fromkeys(sizes) if free is None else sizes
    return {**gone, "read_only": read_only, "probe_ok": ok, "probe_time": time}


def incidents(world: Any) -> list[IncidentTransition]:
    return world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")


def findings(world: Any) -> list[FindingTransition]:
    return world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")


@pytest.fixture
def node(world: Any) -> Node:
    return Node(world)


def running(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.steps(60)
    world.ingest()
    world.beat()
    for rank in (0, 1):
        world.live(rank, step=61, completed=60, phase="forward", since=world.now)


def test_a_full_file_system_opens_one_incident_of_its_node_pages_and_resolves_when_there_is_room_again(world: Any, node: Node) -> None:
    node.passes(3)
    assert not findings(world)
    node.mounts["/data"] = mount(free=10 * GB)
    node.passes()
    began = world.now
    assert not findings(world), "one reading may lie"
    node.passes()
    (finding,) = findings(world)
    (incident,) = incidents(world)
    assert (finding.fault, finding.key, finding.run) == ("filesystem_full", "fault_rule/filesystem_full|node:node-a/mount_point:/data|", "")
    assert (finding.node, finding.device, finding.onset) == ("node-a", "/data", began)
    assert finding.reason == "/data is full: 10 GB of 1 TB free, used up at 49 GB a second", "490 GB in 10 s"
    assert '"mount.free": 10000000000.0' in finding.evidence and began.isoformat() in finding.evidence
    assert (incident.fault, incident.title, incident.located_at) == ("filesystem_full", "A file system is full: /data on node-a", world.now)
    pages = world.store.query(
        "SELECT receiver, event FROM notifications WHERE incident = {i:String} ORDER BY receiver", {"i": incident.incident}
    )
    assert [(p["receiver"], p["event"]) for p in pages] == [("log", "trigger"), ("pager", "trigger")]
    node.mounts["/data"] = mount(free=30 * GB)
    node.passes(3)
    assert len(findings(world)) == 1, "3 % is neither full nor well"
    node.mounts["/data"] = mount(free=200 * GB)
    node.passes(2)
    assert [(f.new_state, f.reason) for f in findings(world)[1:]] == [("cleared", "/data has 200 GB of 1 TB free")]
    over = world.now
    node.passes(5)
    assert incidents(world)[-1].new_state == "open", "for a minute it may come back"
    node.passes(1)
    assert (incidents(world)[-1].new_state, incidents(world)[-1].resolved_at) == ("resolved", over)
    assert len({i.incident for i in incidents(world)}) == 1


def test_the_first_device_of_a_family_is_looked_at_as_soon_as_it_is_told_of(world: Any, node: Node) -> None:
    node.passes(3)
    world.wait(10)
    node.send()
    node._put(GPU, {"node": "node-a", "uuid": "GPU-1"}, {"up": 0}, {"pci": "0000:3b:00.0"})
    world.tick()
    assert [(f.fault, f.device) for f in findings(world)] == [("gpu_fell_off_bus", "GPU-1")]


def test_two_percent_of_a_petabyte_are_not_full(world: Any, node: Node) -> None:
    node.mounts["/lustre"] = mount(free=10_000 * GB) | {"size": 1_000_000 * GB}
    node.passes(3)
    assert not findings(world)


def test_silence_neither_opens_nor_clears_and_a_new_leader_knows_what_the_old_one_knew(world: Any, node: Node) -> None:
    node.passes(3)
    node.mounts["/data"] = mount(free=0)
    node.passes(1)
    for _ in range(10):
        world.wait(30)
        world.tick()
    assert not findings(world), "one bad reading and a silence"
    node.passes(2)
    assert len(findings(world)) == 1
    world.restart_jobs()
    for _ in range(10):
        world.wait(30)
        world.tick()
    world.restart_jobs()
    world.tick()
    assert [f.new_state for f in findings(world)] == ["open"]
    node.mounts["/data"] = mount(free=None, ok=None, time=None)
    node.passes(4)
    assert [f.new_state for f in findings(world)] == ["open"], "a mount that could not be asked tells nothing"
    node.mounts["/data"] = mount()
    node.passes(2)
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]


def test_a_file_system_that_is_no_longer_mounted_is_not_full_any_more(world: Any, node: Node) -> None:
    node.mounts["/data"] = mount(free=0)
    node.passes(2)
    assert [f.new_state for f in findings(world)] == ["open"]
    del node.mounts["/data"]
    node.passes(2)
    assert [f.new_state for f in findings(world)] == ["open"]
    node.passes(1)
    assert (findings(world)[-1].new_state, findings(world)[-1].reason) == ("cleared", "it is no longer there")
    node.passes(7)
    assert len(findings(world)) == 2, "what is over is not found again"
    assert [i.new_state for i in incidents(world)][-1] == "resolved"


def test_a_mount_that_turns_read_only_is_a_fault_and_one_that_always_was_is_none(world: Any, node: Node) -> None:
    node.mounts["/opt/image"] = mount(read_only=1)
    node.passes(2)
    node.mounts["/data"] = mount(read_only=1)
    node.passes(1)
    (finding,) = findings(world)
    assert (finding.fault, finding.device, finding.reason) == ("filesystem_read_only", "/data", "/data was writable and is read-only now")
    assert finding.severity == "critical"
    node.mounts["/data"] = mount()
    node.passes(2)
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]


def test_a_leader_that_was_away_when_a_mount_turned_read_only_sees_that_it_did(world: Any, node: Node) -> None:
    node.send()
    node.mounts["/data"] = mount(read_only=1)
    for _ in range(3):
        world.wait(60)
        node.send()
    world.tick()
    assert [f.fault for f in findings(world)] == ["filesystem_read_only"]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (mount(free=None, ok=0, time=12.0), "mount_hung"),
        (mount(free=None, ok=0, time=0.01), "mount_stale_or_gone"),
    ],
)
def test_a_mount_that_does_not_answer_is_hung_and_one_that_answers_with_an_error_is_stale(
    world: Any, node: Node, values: dict[str, float | None], fault: str
) -> None:
    node.passes(2)
    node.mounts["/data"] = values
    node.passes(2)
    assert [(f.fault, f.device) for f in findings(world)] == [(fault, "/data")]
    node.mounts["/data"] = mount()
    node.passes(2)
    assert findings(world)[-1].new_state == "cleared"


def test_an_oom_kill_seen_in_the_kernels_count_opens_once_for_node_and_group_and_is_over_when_no_more_come(world: Any, node: Node) -> None:
    node.cgroups["/job"] = {"oom_kills": 0}
    node.passes(2)
    node.host["oom_kills"] = 4
    node.cgroups["/job"] = {"oom_kills": 1}
    node.passes(1)
    (finding,) = findings(world)
    assert (finding.fault, finding.key) == ("host_oom_kill", "fault_rule/host_oom_kill|node:node-a|")
    assert "1 process was killed for want of memory" in finding.reason
    node.passes(1)
    assert [f.new_state for f in findings(world)] == ["open"]
    node.passes(1)
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]


def test_an_oom_kill_event_is_found_at_once_and_joins_the_incident_of_the_run_on_its_node(world: Any, node: Node) -> None:
    running(world)
    node.send()
    world.tick()
    world.exits(1, "-9", signal="SIGKILL")
    world.tick()
    world.wait(0.5)
    put_oom(world, "node-a")
    world.tick()
    assert [(f.fault, f.run) for f in findings(world)] == [("rank_crash", "r"), ("host_oom_kill", "r")]
    assert len({f.incident for f in findings(world)}) == 1
    cause = incidents(world)[-1]
    assert (cause.fault, cause.rank, cause.attempt) == ("host_oom_kill", 1, "r-1"), "what the rank died of"
    assert cause.title == "The kernel killed a process for want of memory: rank 1 on node-a, run r"
    assert len(world.actions()) == 1
    put_oom(world, "node-b")
    world.wait(0.5)
    world.tick()
    assert len({f.incident for f in findings(world)}) == 2, "the run has nothing on node-b"
    assert findings(world)[-1].run == ""


@pytest.mark.parametrize("code", ["cgroup", "node"])
@pytest.mark.parametrize("dies", [True, False])
def test_an_oom_kill_told_before_the_end_of_the_rank_that_it_killed_waits_for_that_a_second(
    world: Any, node: Node, dies: bool, code: str
) -> None:
    running(world)
    node.send()
    world.tick()
    put_oom(world, "node-a", code)
    world.tick()
    world.wait(0.6)
    world.tick()
    assert findings(world) == []
    if dies:
        world.exits(1, "-9", signal="SIGKILL")
    world.wait(0.6)
    world.tick()
    expected = {("rank_crash", "r"), ("host_oom_kill", "r")} if dies else {("host_oom_kill", "")}
    assert {(f.fault, f.run) for f in findings(world)} == expected
    assert len({f.incident for f in findings(world)}) == 1


def put_oom(world: Any, name: str, code: str = "cgroup") -> None:
    row = {
        "id": f"oom:{name}",
        "at": world.now,
        "kind": "oom_kill",
        "layer": "kernel",
        "severity": "critical",
        "node": name,
        "code": code,
    }
    world.put(Event(**row, count=2))


def test_an_old_event_is_not_replayed_and_one_on_a_node_that_was_well_since_neither(world: Any, node: Node) -> None:
    put_oom(world, "node-b")
    world.wait(11 * 60)
    put_oom(world, "node-a")
    for _ in range(4):
        world.wait(10)
        node.send()
    world.tick()
    assert not findings(world)


def test_an_event_that_was_handled_is_not_found_again_by_a_new_leader_and_a_new_one_is(world: Any, node: Node) -> None:
    put_oom(world, "node-a")
    node.passes(4)
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]
    world.wait(300)  # longer than readings are read again, and the node is silent
    world.restart_jobs()
    world.tick()
    assert [f.new_state for f in findings(world)] == ["open", "cleared"]
    world.put(Event(id="oom:2", at=world.now, kind="oom_kill", layer="kernel", severity="critical", node="node-a", code="cgroup"))
    world.wait(1)
    world.tick()
    assert [f.new_state for f in findings(world)] == ["open", "cleared", "open"]


def test_a_run_whose_checkpoints_lie_on_a_read_only_mount_is_hit_by_name_until_it_ends(world: Any, node: Node) -> None:
    node.mounts["/data"] = mount(read_only=1)
    node.passes(3)
    assert not findings(world), "it was so for ever, and nobody writes there"
    began = {"old_state": "", "new_state": "started", "reason": "", "actor": "launcher", "at": world.now, "run": "r", "node": "node-a"}
    world.put(RunTransition(**began, checkpoints="/data/ckpt"))
    world.attempt("starting")
    world.beat()
    world.tick()
    (finding,) = findings(world)
    assert (finding.key, finding.run) == ("fault_rule/filesystem_read_only|node:node-a/mount_point:/data|r", "r")
    assert incidents(world)[0].title == "A file system became read-only: /data on node-a, run r"
    world.wait(1)
    world.run("finished", exit_code=0)
    world.tick()
    world.tick()
    assert findings(world)[-1].new_state == "cleared"
    assert incidents(world)[-1].new_state == "resolved"


def test_a_checkpoint_mount_that_is_gone_is_missed_and_is_back_when_it_is_mounted_again(world: Any, node: Node) -> None:
    began = {"old_state": "", "new_state": "started", "reason": "", "actor": "launcher", "at": world.now, "run": "r", "node": "node-a"}
    world.put(RunTransition(**began, checkpoints="/data/ckpt"))
    world.attempt("starting")
    node.passes(2)
    there = node.mounts.pop("/data")
    node.passes(1)
    assert not findings(world)
    node.passes(1)
    (finding,) = findings(world)
    assert (finding.fault, finding.device, finding.run) == ("mount_stale_or_gone", "/data", "r")
    assert finding.reason == "/data, where the run's checkpoints lie, is no longer mounted"
    node.passes(5)
    assert len(findings(world)) == 1
    node.mounts["/data"] = there
    node.passes(1)
    assert (findings(world)[-1].new_state, findings(world)[-1].reason) == ("cleared", "/data is mounted again")


def test_a_node_that_is_started_anew_under_a_run_is_a_fault_and_a_clock_that_steps_is_none(world: Any, node: Node) -> None:
    running(world)
    node.passes(2)
    node.host |= {"boot": 1e9 + 3600, "cpu_busy": 110}
    node.passes(1)
    assert not findings(world), "the clock was set: no counter began anew"
    node.host |= {"boot": 1e9 + 7200, "cpu_busy": 4}
    node.passes(1)
    assert [f.fault for f in findings(world) if f.detector == "fault_rule"] == ["kernel_panic_reboot"]


def test_what_the_kernel_saved_of_its_panic_says_why_the_node_was_started_anew(world: Any, node: Node) -> None:
    running(world)
    node.passes(2)
    node.host |= {"boot": 1e9 + 7200, "cpu_busy": 4}
    world.wait(10)
    node.send()
    crashed = {"kind": "kernel_crashed", "layer": "kernel", "severity": "critical", "code": "panic"}
    world.put(Event(id="c", at=world.now, node="node-a", message="Kernel panic - not syncing: Fatal exception", **crashed))
    world.tick()
    (finding,) = [f for f in findings(world) if f.fault == "kernel_panic_reboot"]
    assert finding.reason == "the kernel gave up before the node was started anew: Kernel panic - not syncing: Fatal exception"


def test_processors_that_everybody_waits_for_are_a_fault_only_where_a_run_is(world: Any, node: Node) -> None:
    node.host |= {"load1": 40, "cpu_count": 16, "pressure_cpu_some": 0}

    def busy(passes: int) -> None:
        for _ in range(passes):
            node.host["pressure_cpu_some"] = (node.host["pressure_cpu_some"] or 0) + 9.5
            world.ingest()
            world.beat()
            node.passes()

    busy(6)
    assert not findings(world)
    running(world)
    for rank in (0, 1):
        world.live(rank, step=61, completed=60, phase="checkpoint", since=world.now)
    busy(1)
    found = [f for f in findings(world) if f.detector == "fault_rule"]
    assert [(f.fault, f.severity) for f in found] == [("cpu_contention", "warning")]
    assert found[0].reason == "tasks waited for a processor 95% of the time, run queue 40 on 16 processors"


def test_ten_thousand_places_of_plumbing_are_left_alone(world: Any, node: Node) -> None:
    node.mounts = {p: mount(free=0) for p in ("/etc/hosts", "/run/lock", "/dev", "/boot/efi", "/snap/core/1", "/var/lib/x/secrets/t")}
    node.mounts["/dev/shm"] = mount(free=0)
    node.passes(3)
    assert [f.device for f in findings(world)] == ["/dev/shm"]


def test_a_failing_run_is_one_incident_and_a_disk_that_fills_an_hour_later_another(new_world: Callable[..., Any]) -> None:
    world = new_world()
    world.now -= timedelta(hours=1)
    node = Node(world)
    running(world)
    node.send()
    world.exits(1, "-9")
    world.tick()
    world.wait(600)
    node.mounts["/data"] = mount(free=0)
    node.passes(2)
    full = [f for f in findings(world) if f.fault == "filesystem_full"]
    assert len(full) == 1 and len({i.incident for i in incidents(world)}) >= 2
    assert full[0].incident not in {i.incident for i in incidents(world) if i.fault == "rank_crash"}
