"""Storms, flapping and silences over the clear through the leader's tick: rows as agents send them, against the real store."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alerts.holds import hold_id
from alerts.outbox import Outbox
from alerts.receivers.pagerduty import BODY_BYTES, render
from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST, MOUNT
from pipeline.clock import utcnow
from pipeline.queries.repairs import repairs
from pipeline.records import (
    AttemptTransition,
    Beat,
    Event,
    FindingTransition,
    IncidentTransition,
    Live,
    NotificationTransition,
    Request,
    RunTransition,
)

GB = 10**9
MOST_WRITES = 60


class Nodes:
    """Agents of some nodes under one switch, and of one elsewhere, that send all at once."""

    def __init__(self, world: Any, folder: Path, count: int = 50, prefix: str = "gpu") -> None:
        self.world, self.number = world, 0
        self.names = [f"{prefix}-{n:03d}" for n in range(1, count + 1)]
        self.alone = f"{prefix}-login"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "topology.yaml"
        path.write_text(
            f'switches:\n  leaf-01: {{nodes: "{prefix}-[001-{count:03d}]", parent: spine-1}}\n'
            f"  leaf-02: {{nodes: {self.alone}, parent: spine-1}}\n  leaf-03: {{parent: spine-1}}\n  spine-1: {{}}\n"
        )
        world.settings = world.settings.model_copy(update={"topology": str(path)})
        self.read_only = 0  # every mount
        self.free: dict[str, dict[str, float]] = {}  # of each node's mounts, bytes of 1 TB; less than 0: it does not answer

    def oom(self, names: Sequence[str], times: int = 1) -> None:
        self.number += 1
        rows = [
            Event(
                id=f"{name}:{self.number}:{n}",
                at=self.world.now,
                kind="oom_kill",
                layer="kernel",
                severity="critical",
                node=name,
                code="cgroup",
            )
            for name in names
            for n in range(times)
        ]
        self.world.store.insert(rows, token=f"oom:{rows[0].id}")

    def send(self) -> None:
        """One pass of every agent."""
        self.number += 1
        now, told = self.world.now, f"{self.alone}:{self.number}"
        hosts, mounts, devices = [], [], []
        for name in (*self.names, self.alone):
            values = {"oom_kills": 3, "load1": 1, "cpu_count": 2, "boot": 1e9, "cpu_busy": 100}
            hosts.append({"device_id": device_id(HOST, {"node": name}), "ts": now, "node": name, **values})
            for point, free in self.free.get(name, {}).items():
                number = device_id(MOUNT, {"node": name, "mount_point": point, "source": "dev"})
                attrs = {"mount_point": point, "source": "dev", "type": "nfs4"}
                devices.append({"device_id": number, "family": "mount", "node": name, "name": "x", "attrs": attrs, "seen_at": now})
                well = {"size": 1000 * GB, "free": free, "inodes": 1000, "inodes_free": 900, "read_only": self.read_only}
                probe = {"probe_ok": 1, "probe_time": 0.001} if free >= 0 else {"probe_ok": 0, "probe_time": 12.0}
                mounts.append({"device_id": number, "ts": now, "node": name, **(well if free >= 0 else {}), **probe})
        self.world.store.insert_rows("devices", devices, token="d" + told)
        self.world.store.insert_rows("host_raw", hosts, token="h" + told)
        self.world.store.insert_rows("mount_raw", mounts, token="m" + told)

    def passes(self, times: int) -> None:
        for _ in range(times):
            self.world.wait(10)
            self.send()
            ticks(self.world)


def ticks(world: Any, times: int = 1) -> None:
    """Ticks half a second apart, with as many restarts as it takes."""
    while times:
        world.wait(0.5)
        try:
            world.tick()
        except world.Killed:
            world.restart_jobs()
        else:
            times -= 1


def asks(world: Any, kind: str, target: str, minutes: float | None = None) -> str:
    end = None if minutes is None else world.now + timedelta(minutes=minutes)
    intent = f"{world.name}:{kind}"
    world.put(Request(intent=intent, at=world.now, kind=kind, target=target, actor="ann", reason="rack move", ends_at=end))
    return hold_id(intent)


def incidents(world: Any) -> list[IncidentTransition]:
    """Of this world's nodes, the last transition of each."""
    rows = world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
    mine = {f.incident for f in findings(world)}
    return list({i.incident: i for i in rows if i.incident in mine}.values())


def findings(world: Any) -> list[FindingTransition]:
    prefix = "gpu-%" if world.name == "r" else f"{world.name}-%"
    return world.store.read(FindingTransition, "SELECT * FROM findings WHERE node LIKE {p:String} ORDER BY at, node", {"p": prefix})


def newest(world: Any) -> list[FindingTransition]:
    """The last transition of each finding."""
    return list({f.finding: f for f in findings(world)}.values())


def paged(world: Any, incident: str) -> list[str]:
    rows = world.store.read(
        NotificationTransition,
        "SELECT * FROM notifications WHERE incident = {i:String} AND receiver = 'pager' AND new_state = 'queued' ORDER BY at",
        {"i": incident},
    )
    return [row.event for row in rows]


def pages(outbox: Outbox) -> list[Any]:
    """What waits to be sent."""
    return [q.page for q in outbox.due("pager", utcnow())]


@pytest.fixture
def nodes(world: Any, tmp_path: Path) -> Nodes:
    return Nodes(world, tmp_path)


def test_a_storm_of_500_events_on_50_nodes_is_one_incident_and_one_page_and_an_unrelated_fault_in_the_middle_its_own(
    world: Any, nodes: Nodes
) -> None:
    nodes.send()
    ticks(world)
    nodes.oom(nodes.names, times=5)
    nodes.oom([nodes.alone])
    nodes.oom(nodes.names, times=5)
    ticks(world)
    assert world.store.query("SELECT count() AS n FROM events")[0]["n"] == 501
    one, other = sorted(incidents(world), key=lambda i: i.node)
    assert one.title == "The kernel killed a process for want of memory: 50 of 50 nodes under switch leaf-01"
    assert (one.node, one.device, one.key) == ("", "switch leaf-01", "host_oom_kill|switch leaf-01|")
    assert (other.node, other.title) == (nodes.alone, f"The kernel killed a process for want of memory: {nodes.alone}")
    assert {f.incident for f in findings(world) if f.node != nodes.alone} == {one.incident}
    assert paged(world, one.incident) == ["trigger"], "at once: everybody is there"
    assert paged(world, other.incident) == [], "it lies under a switch, too: its siblings may follow"
    ticks(world, 4)
    assert (paged(world, one.incident), paged(world, other.incident)) == (["trigger"], ["trigger"])
    told = next(p for p in pages(world.outboxes[0]) if p.dedup_key == one.incident)
    body = render(told, "k" * 32)
    assert len(body) <= BODY_BYTES
    assert told.summary.startswith(one.title) and told.source == "switch leaf-01"
    assert told.details["where"] == "nodes gpu-[001-050], switch leaf-01"
    assert told.details["found"].endswith("; and 30 more")
    nodes.passes(3)
    assert {f.new_state for f in findings(world)[-51:]} == {"cleared"}
    assert [i.new_state for i in incidents(world)] == ["open", "open"], "it may come back"
    nodes.passes(7)
    assert [i.new_state for i in incidents(world)] == ["resolved", "resolved"]
    assert paged(world, one.incident) == ["trigger", "resolve"]
    cleared = max(f.at for f in findings(world) if f.incident == one.incident)
    assert incidents(world)[0].resolved_at == cleared, "it was over when the last finding went"


def test_a_fault_of_500_places_is_written_in_a_handful_of_inserts_and_its_page_fits(world: Any, nodes: Nodes) -> None:
    for name in nodes.names:
        nodes.free[name] = {f"/data/{n}": 500 * GB for n in range(10)}
    nodes.passes(2)
    for name in nodes.names:
        nodes.free[name] = {f"/data/{n}": -1 for n in range(10)}
    nodes.passes(1)
    world.ticker, world.leaders_store = None, world.mortal(10**6)
    nodes.passes(1)
    assert len(findings(world)) == 500
    (one,) = incidents(world)
    assert one.title == "A file system does not answer: 500 places on 50 of 50 nodes under switch leaf-01"
    written = 10**6 - world.leaders_store.left
    assert written == 4, "findings, incident, and a page for each of the two receivers"
    (told,) = pages(world.outboxes[0])
    assert len(render(told, "k" * 32)) < 10_000
    for name in nodes.names:
        nodes.free[name] = {f"/data/{n}": 500 * GB for n in range(10)}
    nodes.passes(2)
    assert len(findings(world)) == 1000
    assert 10**6 - world.leaders_store.left == written + 1, "all are cleared in one insert"


def test_a_storm_that_comes_node_by_node_is_one_page_too(world: Any, nodes: Nodes) -> None:
    nodes.send()
    ticks(world)
    for n in range(0, 50, 2):
        nodes.oom(nodes.names[n : n + 2])
        ticks(world)
    (one,) = {f.incident for f in newest(world)}
    assert next(i for i in incidents(world) if i.incident == one).title.endswith("50 of 50 nodes under switch leaf-01")
    assert [event for i in incidents(world) for event in paged(world, i.incident)] == ["trigger"]


def test_faults_that_follow_slowly_are_merged_when_the_third_shows_that_they_are_one(world: Any, nodes: Nodes) -> None:
    nodes.send()
    ticks(world)
    nodes.oom(nodes.names[:1])
    ticks(world, 6)
    nodes.oom(nodes.names[1:2])
    ticks(world, 6)
    first, second = incidents(world)
    assert (paged(world, first.incident), paged(world, second.incident)) == (["trigger"], [])
    nodes.oom(nodes.names[2:3])
    ticks(world)
    assert [i.incident for i in incidents(world)] == [first.incident, second.incident]
    assert incidents(world)[0].title == "The kernel killed a process for want of memory: 3 of 50 nodes under switch leaf-01"
    assert incidents(world)[0].reason == "one cause: 3 of 50 nodes under switch leaf-01, within 6.0 s", "six ticks and six"
    merged = incidents(world)[1]
    assert (merged.new_state, merged.merged_into) == ("resolved", first.incident)
    assert {f.incident for f in newest(world)} == {first.incident}
    ticks(world, 40)
    assert (paged(world, first.incident), paged(world, second.incident)) == (["trigger"], []), "nobody was told of it, nor is"
    nodes.passes(10)
    assert {i.new_state for i in incidents(world)} == {"resolved"}
    assert paged(world, first.incident) == ["trigger", "resolve"]
    assert [r.incident for r in repairs(world.store, world.now - timedelta(hours=1))] == [first.incident], "one time to repair"


def test_what_comes_and_goes_is_one_incident_with_a_count(world: Any, nodes: Nodes) -> None:
    name = nodes.alone
    nodes.free[name] = {"/data": 0}
    nodes.passes(2)
    for _ in range(2):
        nodes.free[name] = {"/data": 500 * GB}
        nodes.passes(3)
        world.restart_jobs()
        nodes.free[name] = {"/data": 0}
        nodes.passes(2)
    (one,) = incidents(world)
    assert one.title == f"A file system is full: /data on {name} (3rd time in 1 min 45 s)", "found at 10.5 s, then every 52.5 s"
    assert one.reason == "it came back: 3rd time in 1 min 45 s"
    assert paged(world, one.incident) == ["trigger"]
    nodes.free[name] = {"/data": 500 * GB}
    nodes.passes(2)
    over = world.now
    for _ in range(9):
        world.wait(60)
        nodes.send()
        ticks(world)
    assert [i.new_state for i in incidents(world)] == ["open"], "what came back once is given ten times as long"
    world.wait(60)
    ticks(world, 2)
    (one,) = incidents(world)
    assert (one.new_state, one.resolved_at) == ("resolved", over)
    assert paged(world, one.incident) == ["trigger", "resolve"]


def test_what_went_inside_a_silence_never_pages_though_it_is_watched_for_longer(world: Any, nodes: Nodes) -> None:
    asks(world, "silence", f"node={nodes.alone}", minutes=1)
    ticks(world)
    nodes.oom([nodes.alone])
    nodes.passes(3)
    assert findings(world)[-1].new_state == "cleared"
    world.wait(40)
    ticks(world, 60)
    assert [i.new_state for i in incidents(world)] == ["resolved"]
    assert paged(world, incidents(world)[0].incident) == []


def test_a_silence_of_one_node_does_not_silence_its_switch_and_one_of_all_of_them_does(new_world: Any, tmp_path: Path) -> None:
    for name, silenced, told in (
        ("w1", "node=w1-001", ["trigger"]),
        ("w2", "fault=host_oom_kill", []),
        ("w3", "device=switch leaf-01", []),
    ):
        world = new_world(name)
        nodes = Nodes(world, tmp_path / name, 4, prefix=name)
        asks(world, "silence", silenced, minutes=0.1)
        ticks(world)
        nodes.oom(nodes.names)
        ticks(world)
        (one,) = incidents(world)
        assert paged(world, one.incident) == told, silenced
        world.wait(7)


def test_a_file_that_shows_an_incident_to_be_of_two_storms_makes_all_of_it_one(world: Any, nodes: Nodes) -> None:
    """Three nodes at once, one of which comes again with two others six minutes later: without a file five incidents."""
    file, mine = world.settings, nodes.names[:5]
    world.settings = world.settings.model_copy(update={"topology": ""})
    full, well = {"/data": 0}, {"/data": 500 * GB}
    nodes.free = {name: dict(well) for name in mine}
    nodes.passes(2)
    nodes.free |= {mine[1]: full, mine[2]: full}
    nodes.passes(1)
    nodes.free |= {mine[0]: full}
    nodes.passes(2)
    for now in (well, full, well):
        nodes.free |= {mine[0]: now}
        nodes.passes(3)
    for _ in range(36):
        nodes.passes(1)
    nodes.free |= {name: full for name in (mine[0], *mine[3:])}
    nodes.passes(2)
    first = [i.node for i in incidents(world)]
    assert sorted(first) == mine, "one a node, each still open"
    assert {i.new_state for i in incidents(world)} == {"open"}
    world.settings = file
    world.restart_jobs()
    ticks(world)
    (left,) = [i for i in incidents(world) if i.new_state == "open"]
    assert left.title.startswith("A file system is full: /data on 5 of 50 nodes under switch leaf-01")
    assert {i.merged_into for i in incidents(world)} == {"", left.incident}
    assert {f.incident for f in newest(world) if f.new_state == "open"} == {left.incident}


# --- one run on several nodes ----------------------------------------------------------------


def launchers(world: Any, names: Sequence[str], seconds: int, *, silent: bool = False) -> None:
    """A run with one launcher and one rank on each node: for so long, a tick every three seconds."""
    for _ in range(0, seconds, 3):
        world.wait(3)
        world.ingest()
        for rank, name in enumerate(names):
            if silent:
                continue
            world.put(Beat(component="launcher", at=world.now, node=name, run="r", attempt="r-1", state="running", launch=1))
            usual = {"run": "r", "attempt": "r-1", "node": name, "rank": rank, "at": world.now, "pid": 100 + rank}
            world.put(Live(**usual, step=61, completed=60, phase="forward", since=world.now, process_state="S"))
        world.tick()


def started(world: Any, names: Sequence[str]) -> None:
    usual = {"old_state": "", "reason": "", "actor": "launcher", "at": world.now, "run": "r", "node": names[0]}
    world.put(RunTransition(**usual, new_state="started", checkpoints="/data/ckpt"))
    world.put(AttemptTransition(**usual, new_state="running", attempt="r-1", launch=1, ranks=3, nodes=",".join(names)))


def test_what_a_runs_checkpoints_lie_on_turns_read_only_on_all_its_nodes_and_is_one_incident_of_the_run(world: Any, nodes: Nodes) -> None:
    world.settings = world.settings.model_copy(update={"topology": ""})
    mine = nodes.names[:2]
    started(world, mine)
    for name in mine:
        nodes.free[name] = {"/data": 500 * GB}
    nodes.send()
    launchers(world, mine, 3)
    nodes.read_only = 1
    nodes.send()
    launchers(world, mine, 3)
    (one,) = incidents(world)
    assert (one.title, one.run, one.node) == ("A file system became read-only: /data on 2 nodes, run r", "r", mine[0])
    assert paged(world, one.incident) == ["trigger"], "at once: a run is hit"
    assert [f.node for f in findings(world)] == mine


def test_two_hosts_of_one_run_that_fall_silent_together_are_one_incident_and_one_page(world: Any, nodes: Nodes) -> None:
    mine = nodes.names[:2]
    started(world, mine)
    launchers(world, mine, 15)
    launchers(world, mine, 25, silent=True)
    assert [(f.fault, f.node) for f in newest(world) if f.new_state == "open"] == [("host_down", name) for name in mine]
    (one,) = incidents(world)
    assert (one.title, one.node) == ("A node is down or cut off, its agent and launcher are both silent: 2 nodes, run r", mine[0])
    assert len({a.action for a in world.actions()}) < 2, "never one a node"
    assert paged(world, one.incident) == ["trigger"]


# --- kill -9 ---------------------------------------------------------------------------------


def story(world: Any, nodes: Nodes) -> None:
    """A storm in two halves, an unrelated fault between them; acknowledged, acting paused, silenced over the clear; the silence ends."""
    nodes.send()
    ticks(world)
    nodes.oom(nodes.names[:2])
    ticks(world)
    nodes.oom([nodes.alone])
    ticks(world)
    nodes.oom(nodes.names[2:])
    ticks(world, 8)
    one = next(i for i in incidents(world) if not i.node)
    world.asks(f"k-{world.name}", "acknowledge", one.incident)
    asks(world, "pause_actions", "actions")
    ticks(world)
    asks(world, "silence", "fault=host_oom_kill", minutes=5)
    ticks(world)
    nodes.passes(4)
    asks(world, "resume_actions", "actions")
    nodes.passes(3)
    world.wait(301)
    ticks(world)


SWEEPS = [
    pytest.param(7, 1, id="at every seventh write"),
    pytest.param(1, 0, id="at every write, just before", marks=pytest.mark.slow),
    pytest.param(1, 2, id="at every write, just after", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("stride", "side"), SWEEPS)
def test_a_storm_is_the_same_however_often_the_leader_dies(new_world: Any, tmp_path: Path, stride: int, side: int) -> None:
    for nth in range(1, MOST_WRITES, stride):
        world = new_world(f"w{nth}")
        world.now += timedelta(minutes=20 * nth)  # faults of nodes are everybody's: each world has a time of its own
        world.settings = world.settings.model_copy(update={"detect": world.settings.detect.model_copy(update={"settle": 20})})
        nodes = Nodes(world, tmp_path / world.name, 6, prefix=world.name)
        world.leaders_store = leader = world.mortal(nth, after=side == 2 or (side == 1 and nth % 2 == 0))
        story(world, nodes)
        where = f"killed at write {nth}"
        left = [i for i in incidents(world) if not i.merged_into]
        assert [(i.node, i.new_state) for i in sorted(left, key=lambda i: i.node)] == [("", "resolved"), (nodes.alone, "resolved")], where
        one, other = sorted(left, key=lambda i: i.node)
        assert one.title.endswith("6 of 6 nodes under switch leaf-01"), where
        assert one.acknowledged_by == "ann", where
        assert paged(world, one.incident) == ["trigger", "acknowledge", "resolve"], where
        assert paged(world, other.incident) == ["trigger", "resolve"], where
        assert {f.new_state for f in newest(world)} == {"cleared"}, where
        assert len({f.finding for f in findings(world)}) == 7, where
        if leader.left > 0:
            return
    raise AssertionError("the leader writes more than was tried")


def test_a_page_of_a_storm_answers_what_where_since_when_how_many_who_is_hit_and_what_is_done(world: Any, nodes: Nodes) -> None:
    nodes.send()
    ticks(world)
    nodes.oom(nodes.names)
    ticks(world)
    (told,) = pages(world.outboxes[0])
    at = f"{world.now - timedelta(seconds=0.5):%H:%M:%S}"
    assert told.summary == (
        "The kernel killed a process for want of memory: 50 of 50 nodes under switch leaf-01. "
        f"Since {at} UTC (0.5 s). Surefoot: does nothing about this by itself; somebody has to look."
    )
    assert json.loads(render(told, "k" * 32))["payload"]["source"] == "switch leaf-01"
