"""The read models of nodes, with real rows in a real store, against sums worked out by hand."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from pipeline.catalog.metrics import CGROUP, HOST, MOUNT, Family
from pipeline.catalog.metrics import GPU as REAL_GPU
from pipeline.queries.collectors_failing import collectors_failing
from pipeline.queries.launchers_now import launchers_now
from pipeline.queries.mounts_fullest import FullestMount, mounts_fullest
from pipeline.queries.node_disks import node_disks
from pipeline.queries.node_events import node_events
from pipeline.queries.node_failures import node_failures
from pipeline.queries.node_gpus import GpuSlot, node_gpus
from pipeline.queries.node_history import node_history
from pipeline.queries.node_incidents import node_incidents
from pipeline.queries.node_mounts import node_mounts
from pipeline.queries.node_ranks import node_ranks
from pipeline.queries.node_readings import a_second, node_readings
from pipeline.queries.nodes_heard import NAMED, nodes_heard
from pipeline.queries.nodes_known import nodes_known
from pipeline.queries.nodes_now import nodes_now
from pipeline.records import Beat, Event, Live
from pipeline.store import Store

GB = 10**9
GPU = Family("gpu", ("node", "uuid"), "A GPU that the catalogue does not know yet", ())


def test_the_inventory_gives_every_node_and_how_many_gpus_it_has(store: Store, machines: Any) -> None:
    machines.host("b")
    machines.host("b")  # heard again
    machines.device(HOST, {"node": "a"}, {})
    machines.mount("b", "/", 0.5)
    for uuid in ("x", "y"):
        machines.device(GPU, {"node": "b", "uuid": uuid}, {})
    assert [(n.node, n.gpus) for n in nodes_known(store)] == [("a", 0), ("b", 2)]


def test_a_machines_shares_are_what_its_counters_grew_by_over_the_time_that_was_asked_about(store: Store, machines: Any) -> None:
    """By hand: between 100 s and 3 s ago 97 s passed, in which 8 CPUs were busy for 0.25 * 8 * 97 s."""
    machines.host("well", busy=0.25, io=0.1)
    machines.host("well", ages=(1.0,), io=0.1, cpu_busy=None, memory_available=None)  # what is absent does not hide what was read before
    machines.host("ahead", ages=(-30.0,))
    machines.host("old", ages=(500.0,))
    machines.host("once", ages=(5.0,))
    machines.host("rebooted", ages=(90.0, 60.0))
    machines.host("rebooted", ages=(4.0,), cpu_busy=7.0, pressure_cpu_some=1.0, pressure_io_some=0.0)
    found = {n.node: n for n in nodes_now(store, machines.back(120), machines.back(0))}
    assert set(found) == {"well", "once", "rebooted"}
    well = found["well"]
    assert (well.at, well.cpus, well.memory_total, well.memory_available) == (machines.back(1), 8, 64 * GB, 48 * GB)
    assert (well.cpu_busy, well.cpu_pressure, well.memory_pressure) == (pytest.approx(0.25), pytest.approx(0.02), 0.0)
    assert well.io_pressure == pytest.approx(0.1)
    assert (found["once"].cpu_busy, found["once"].io_pressure, found["once"].memory_available) == (None, None, 48 * GB)
    assert (found["rebooted"].cpu_busy, found["rebooted"].cpu_pressure) == (None, None)


def test_silent_nodes_are_looked_for_further_back_by_name_or_all_of_them(store: Store, machines: Any) -> None:
    machines.host("a", ages=(4000.0, 3000.0))
    machines.host("b", ages=(100.0,))
    day = machines.back(86_400)
    assert [(n.node, n.at) for n in nodes_heard(store, ["a", "never"], day, machines.now)] == [("a", machines.back(3000))]
    many = [f"x{i}" for i in range(NAMED + 1)]
    assert {n.node for n in nodes_heard(store, many, day, machines.now)} == {"a", "b"}
    assert nodes_heard(store, [], day, machines.now) == [] == nodes_heard(store, ["a"], machines.back(60), machines.now)


def test_the_fullest_mount_is_one_that_can_fill_up(store: Store, machines: Any) -> None:
    machines.mount("n", "/", 0.40)
    machines.mount("n", "/data", 0.85, ages=(60.0, 3.0))
    machines.mount("n", "/boot/efi", 0.86)  # as with rules: the machine's own
    machines.mount("n", "/etc/hosts", 0.99)  # a container's plumbing
    machines.mount("n", "/opt/image", 1.0, kind="squashfs")
    machines.mount("n", "/ro", 0.98, read_only=1)
    machines.mount("n", "/hung", 0.97, size=None, free=None)
    machines.mount("n", "/gone", 0.96, ages=(900.0,))
    machines.mount("m", "/etc/resolv.conf", 0.5)
    assert mounts_fullest(store, machines.back(120), machines.now) == [FullestMount("n", "/data", pytest.approx(0.85))]


def test_a_launcher_is_its_last_word(store: Store, machines: Any) -> None:
    beat = Beat(component="launcher", at=machines.back(9), node="n", run="r", attempt="r-1", state="starting", launch=1)
    ranks = "0:alive:11,1:exit:-9,2:alive:13"
    rows = [beat, Beat(component="launcher", at=machines.back(2), node="n", run="r", attempt="r-2", state="running", launch=2, ranks=ranks)]
    rows += [Beat(component="jobs", at=machines.back(1), node="n")]
    rows += [Beat(component="launcher", at=machines.back(5000), node="old", run="r")]
    store.insert(rows, token="b")
    (found,) = launchers_now(store, machines.back(3600), machines.now)
    assert (found.node, found.run, found.at, found.attempt, found.state, found.alive) == ("n", "r", machines.back(2), "r-2", "running", 2)


def test_collectors_that_give_nothing_are_named_with_when_they_last_did(store: Store, machines: Any) -> None:
    machines.collector("n", "host", ok=True)
    machines.collector("n", "mount", ok=False, ok_ago=70)
    machines.collector("m", "disk", ok=False, ok_ago=None)
    found = collectors_failing(store, machines.back(120), machines.now)
    assert [(c.node, c.collector) for c in found] == [("m", "disk"), ("n", "mount")]
    assert found[0].ok_at is None and abs((found[1].ok_at - machines.back(70)).total_seconds()) < 0.001  # type: ignore[operator]


def test_readings_are_the_last_that_were_no_null_each_with_its_age_and_a_counters_rate(store: Store, machines: Any) -> None:
    machines.host("n", busy=0.25)
    machines.mount("n", "/data", 0.85, ages=(60.0, 20.0))
    machines.mount("n", "/data", 0.85, ages=(3.0,), size=None, free=None, probe_ok=0, probe_time=9.0)  # it hangs now
    machines.disk("n", "sda", read=1e6, written=0)
    machines.device(CGROUP, {"node": "n", "cgroup": "/job", "run": "r"}, {5.0: {"oom_kills": 2, "memory_used": GB, "memory_limit": None}})
    machines.host("other")
    found = {(d.family, d.name): d for d in node_readings(store, "n", machines.back(600), machines.now)}
    assert set(found) == {("host", "n"), ("mount", "/data /dev/data"), ("disk", "sda"), ("cgroup", "/job r")}
    mount = found["mount", "/data /dev/data"]
    assert mount.attrs == {"mount_point": "/data", "source": "/dev/data", "type": "ext4"} and mount.at == machines.back(3)
    assert (mount.values["mount.free"].value, mount.values["mount.free"].at) == (15 * GB, machines.back(20))
    assert (mount.values["mount.probe.ok"].value, mount.values["mount.probe.ok"].at) == (0.0, machines.back(3))
    host = found["host", "n"].values
    assert host["host.cpu.busy"].a_second == pytest.approx(2.0) and host["host.load1"].a_second is None  # 0.25 of 8 CPUs
    assert "host.shm.total" not in host
    assert found["disk", "sda"].values["disk.read"].a_second == pytest.approx(1e6)
    limits = found["cgroup", "/job r"].values
    assert "cgroup.memory.limit" not in limits and limits["cgroup.oom_kills"].a_second is None


def test_a_rate_is_over_the_last_minute_and_none_where_a_counter_began_anew() -> None:
    t = datetime(2026, 1, 1)  # noqa: DTZ001 - only differences count

    def series(*points: tuple[float, float]) -> list[tuple[datetime, float]]:
        return [(t + timedelta(seconds=s), v) for s, v in points]

    assert a_second(series((0, 0), (100, 50), (130, 80), (160, 170))) == 2.0  # from 100 s on
    assert a_second(series((0, 0), (100, 50))) == 0.5  # readings are further apart
    assert a_second(series((0, 90), (10, 5), (20, 105))) is None
    assert a_second(series((0, 90))) is None


@pytest.fixture
def minute(machines: Any) -> datetime:
    """A whole minute, ten minutes ago."""
    return (machines.now - timedelta(minutes=10)).replace(second=0, microsecond=0)


def test_history_is_sums_over_sums_and_a_gap_or_a_new_counter_says_nothing(store: Store, machines: Any, minute: datetime) -> None:
    """4 CPUs, half busy for 60 s, then a quarter; then nothing for 3 minutes, and a reboot."""
    rows: dict[float, dict[str, Any]] = {}
    for s in range(0, 121, 10):
        busy = 4 * (0.5 * min(s, 60) + 0.25 * max(s - 60, 0))
        rows[(machines.now - minute).total_seconds() - s] = {"cpu_busy": 1000 + busy, "memory_available": 25, "pressure_io_some": 0.1 * s}
    rows[(machines.now - minute).total_seconds() - 300] = {"cpu_busy": 2000.0, "memory_available": 50}
    rows[(machines.now - minute).total_seconds() - 310] = {"cpu_busy": 5.0, "memory_available": 50}
    machines.device(HOST, {"node": "n"}, {age: {"cpu_count": 4, "memory_total": 100} | row for age, row in rows.items()})
    machines.host("other")
    found = node_history(store, "n", minute - timedelta(seconds=1), machines.now, width=60, gap=30.0)
    assert [h.at for h in found] == [minute + timedelta(seconds=s) for s in (0, 60, 120, 300)]
    # the second minute holds the last 10 s of the half busy time: (10 * 0.5 + 50 * 0.25) / 60
    assert [h.cpu_busy for h in found] == [pytest.approx(0.5), pytest.approx(17.5 / 60), pytest.approx(0.25), None]
    assert [h.io_pressure for h in found] == [pytest.approx(0.1)] * 3 + [None]
    assert [h.memory_used for h in found] == [0.75, 0.75, 0.75, 0.5]
    assert {h.shm_used for h in found} == {None} == {h.cpu_iowait for h in found}


def test_the_history_of_mounts_is_of_the_fullest_and_of_disks_of_all_together(store: Store, machines: Any, minute: datetime) -> None:
    age = (machines.now - minute).total_seconds()
    machines.mount("n", "/data", 0.2, ages=(age - 5,))
    machines.mount("n", "/data", 0.4, ages=(age - 15,))
    machines.mount("n", "/data", 0.9, ages=(age - 65,))
    machines.mount("n", "/", 0.5, ages=(age - 65,))
    machines.mount("n", "/least", 0.1, ages=(age - 5, age - 65))
    machines.mount("n", "/etc/hosts", 1.0, ages=(age - 65,))
    start, end = minute - timedelta(seconds=1), machines.now
    slots = [(s.at, s.mount_point, pytest.approx(s.used)) for s in node_mounts(store, "n", start, end, width=60, limit=2)]
    later = minute + timedelta(seconds=60)
    assert slots == [(minute, "/data", 0.3), (later, "/", 0.5), (later, "/data", 0.9)]
    machines.disk("n", "sda", read=100, written=7, ages=(age, age - 20, age - 40))
    machines.disk("n", "sdb", read=1000, written=0, ages=(age - 10, age - 20))
    assert [(d.at, d.read, d.written) for d in node_disks(store, "n", start, end, width=60, gap=30.0)] == [
        (minute, pytest.approx(1100), pytest.approx(7))
    ]


def test_the_history_of_gpus_is_of_the_busiest_the_idlest_and_the_fullest(store: Store, machines: Any, minute: datetime) -> None:
    """By hand: the means of 0.8 and 1.0, and of 0.2 and 0.4; 60 of 80 GB. A GPU that is lost tells nothing, and is none of them."""
    age = (machines.now - minute).total_seconds()

    def gpu(uuid: str, rows: dict[float, dict[str, Any]], node: str = "n") -> None:
        machines.device(REAL_GPU, {"node": node, "uuid": uuid}, rows)

    gpu("x", {age - 5: {"utilization": 0.8, "memory_used": 60 * GB, "memory_total": 80 * GB}, age - 15: {"utilization": 1.0}})
    gpu("y", {age - 5: {"utilization": 0.2, "memory_used": 8 * GB, "memory_total": 80 * GB}, age - 15: {"utilization": 0.4}})
    gpu("lost", {age - 5: {"up": 0}, age - 65: {"up": 0}})
    gpu("z", {age - 5: {"utilization": 0.0}}, "other")
    start, end = minute - timedelta(seconds=1), machines.now
    assert node_gpus(store, "n", start, end, width=60) == [GpuSlot(minute, pytest.approx(0.9), pytest.approx(0.3), 0.75)]
    assert node_gpus(store, "none", start, end, width=60) == []


def test_events_of_a_node_are_its_newest_each_once(store: Store, machines: Any) -> None:
    def event(name: str, ago: float, node: str = "n", kind: str = "oom_kill", code: str = "") -> Event:
        return Event(id=name, at=machines.back(ago), kind=kind, layer="kernel", severity="critical", node=node, code=code)

    store.insert([event("a", 50), event("b", 40), event("b", 40), event("c", 30, node="m"), event("d", 20, kind="phase")], token="e")
    store.insert([event("e", 9999), *(event(f"f{i}", 90 - i, kind="collector_failed", code="mount") for i in range(2))], token="f")
    since = machines.back(1000)
    assert [e.id for e in node_events(store, "n", since, ["phase"], limit=9)] == ["b", "a", "f1", "f0"]
    assert [e.id for e in node_events(store, "n", since, [], limit=2)] == ["d", "b"]
    assert [(e.code, e.id) for e in node_failures(store, "n")] == [("mount", "f1")] and node_failures(store, "m") == []


def test_incidents_of_a_node_name_it_or_have_a_finding_on_it_and_open_ones_come_first(store: Store, machines: Any) -> None:
    open_, over = machines.incident("open", "n"), machines.incident("over", "n", at=machines.back(5), new_state="resolved")
    store.insert([machines.incident("over", "n"), open_, over, machines.incident("switch", ""), machines.incident("o", "m")], token="i")
    store.insert([machines.finding("switch", "n"), machines.finding("", "n", finding="loose")], token="f")
    found = [(i.incident, i.new_state) for i in node_incidents(store, "n", limit=9)]
    assert set(found[:2]) == {("open", "open"), ("switch", "open")} and found[2:] == [("over", "resolved")]
    assert len(node_incidents(store, "n", limit=1)) == 1


def test_ranks_of_a_node_are_their_last_word(store: Store, machines: Any) -> None:
    def live(rank: int, ago: float, node: str = "n", run: str = "r", attempt: str = "r-1") -> Live:
        return Live(run=run, attempt=attempt, node=node, rank=rank, at=machines.back(ago), pid=1)

    rows = [live(1, 9), live(1, 2, attempt="r-1.1"), live(0, 3), live(2, 3, node="m"), live(3, 3, run="other"), live(4, 900)]
    store.insert(rows, token="l")
    found = node_ranks(store, "n", ["r"], machines.back(600), machines.now)
    assert [(r.rank, r.attempt, r.at) for r in found] == [(0, "r-1", machines.back(3)), (1, "r-1.1", machines.back(2))]


def test_a_fleet_of_two_thousand_nodes_is_read_in_the_same_way(store: Store, machines: Any) -> None:
    """Node i is busy for a share of i / 4000 and its /data is full to i / 2000."""
    from pipeline.catalog.devices import device_id

    names = [f"gpu-{i:04}" for i in range(2000)]
    hosts, devices, mounts = [], [], []
    for i, n in enumerate(names):
        ident = device_id(HOST, {"node": n})
        devices.append({"device_id": ident, "family": "host", "node": n, "name": n, "attrs": {}, "seen_at": machines.back(900)})
        for age in (63.0, 3.0):
            row = {"device_id": ident, "ts": machines.back(age), "node": n, "cpu_count": 10, "memory_available": i}
            hosts.append(row | {"cpu_busy": 10 * (i / 4000) * (1000 - age)})
        place = {"node": n, "mount_point": "/data", "source": "fs"}
        disk = device_id(MOUNT, place)
        devices.append({"device_id": disk, "family": "mount", "node": n, "name": "/data fs", "attrs": place, "seen_at": machines.back(900)})
        mounts.append({"device_id": disk, "ts": machines.back(3), "node": n, "size": 2000, "free": 2000 - i, "read_only": 0})
    for table, rows in (("devices", devices), ("host_raw", hosts), ("mount_raw", mounts)):
        machines.insert(table, rows)
    assert [n.node for n in nodes_known(store)] == names
    found = nodes_now(store, machines.back(120), machines.now)
    assert [(n.node, n.memory_available) for n in found] == [(n, i) for i, n in enumerate(names)]
    assert [n.cpu_busy for n in found] == [pytest.approx(i / 4000, abs=1e-9) for i in range(2000)]
    full = mounts_fullest(store, machines.back(120), machines.now)
    assert [m.node for m in full] == names and [m.used for m in full] == [pytest.approx(i / 2000, abs=1e-9) for i in range(2000)]
    assert len(nodes_heard(store, names, machines.back(86_400), machines.now)) == 2000
