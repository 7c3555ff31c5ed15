"""Control groups of both versions as fixture trees, and the watch that tells of kills within a second."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from exporters.collector import RankProcess, Site
from exporters.host.cgroup import CgroupCollector
from exporters.host.groups import KEEP
from exporters.host.oom import OomCollector
from exporters.sources import cgroups
from pipeline.records import Event

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
V1 = {"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill {n}\n", "memory.usage_in_bytes": "100\n"}
V2 = {"memory.events": "low 0\nhigh 0\nmax 7\noom 3\noom_kill {n}\n", "memory.current": "100\n", "memory.max": "max\n"}


@dataclass
class Machine:
    """A /proc, a tree of control groups, and the ranks that the agent knows."""

    root: Path
    ranks: list[RankProcess] = field(default_factory=list)

    @property
    def site(self) -> Site:
        return replace(Site("node1"), proc=self.root / "proc", cgroups=self.root / "cg", ranks=lambda: tuple(self.ranks))

    def process(self, pid: int, text: str) -> None:
        (self.root / f"proc/{pid}").mkdir(parents=True, exist_ok=True)
        (self.root / f"proc/{pid}/cgroup").write_text(text)

    def group(self, folder: str, files: dict[str, str], kills: int) -> None:
        (self.root / "cg" / folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.root / "cg" / folder / name).write_text(text.format(n=kills))

    def node_kills(self, kills: int) -> None:
        (self.root / "proc").mkdir(parents=True, exist_ok=True)
        (self.root / "proc/vmstat").write_text(f"pgfault 1\noom_kill {kills}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, [RankProcess("r", 0, 10, 1), RankProcess("r", 1, 11, 1)])


@pytest.mark.parametrize(
    ("told", "folder", "files", "version", "path"),
    [
        ("0::/job/a\n", "job/a", V2, 2, "/job/a"),
        ("5:cpu,cpuacct:/x\n4:memory:/job/a\n0::/\n", "memory/job/a", V1, 1, "/job/a"),
        ("4:cpuset:/x\n0::/job/a\n", "unified/job/a", V2, 2, "/job/a"),
        ("4:memory:/docker/f00\n", "memory", V1, 1, "/docker/f00"),  # a container sees its own part at the mount
        ("0::/../other\n", ".", V2, 2, "/../other"),
        ("0::/a:b c\n", "a:b c", V2, 2, "/a:b c"),
    ],
)
def test_the_group_of_a_process_is_found_in_either_version(
    machine: Machine, told: str, folder: str, files: dict[str, str], version: int, path: str
) -> None:
    machine.process(10, told)
    machine.group(folder, files, 2)
    group = cgroups.group_of(machine.root / "proc", machine.root / "cg", 10)
    assert group is not None and (group.version, group.path) == (version, path)
    memory = cgroups.memory(group)
    assert memory is not None and (memory.oom_kills, memory.used, memory.limit) == (2, 100, None)


def test_a_container_whose_mount_shows_a_part_of_the_tree_has_its_path_told_from_there(machine: Machine) -> None:
    machine.process(10, "4:memory:/pods/p1/job\n")
    (machine.root / "proc/self").mkdir()
    (machine.root / "proc/self/mountinfo").write_text("35 31 0:32 /pods/p1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
    machine.group("memory/job", V1, 5)
    machine.group("memory", V1, 9)
    group = cgroups.group_of(machine.root / "proc", machine.root / "cg", 10)
    assert group is not None
    memory = cgroups.memory(group)
    assert memory is not None and memory.oom_kills == 5


@pytest.mark.parametrize(("text", "limit"), [("9223372036854771712\n", None), ("2147483648\n", 2147483648), ("max\n", None), ("x", None)])
def test_a_limit_that_is_none_is_absent(machine: Machine, text: str, limit: int | None) -> None:
    machine.process(10, "4:memory:/j\n")
    machine.group("memory/j", {**V1, "memory.limit_in_bytes": text}, 0)
    group = cgroups.group_of(machine.root / "proc", machine.root / "cg", 10)
    assert group is not None
    memory = cgroups.memory(group)
    assert memory is not None and memory.limit == limit


def test_a_process_that_is_gone_has_no_group_and_a_group_that_is_gone_no_memory(machine: Machine) -> None:
    assert cgroups.group_of(machine.root / "proc", machine.root / "cg", 10) is None
    assert cgroups.memory(cgroups.Group("/x", machine.root / "cg/x", 2)) is None
    machine.process(10, "nonsense")
    assert cgroups.group_of(machine.root / "proc", machine.root / "cg", 10) is None


def test_a_group_is_read_once_for_all_its_ranks_and_goes_on_being_read_after_its_last_one(machine: Machine) -> None:
    for pid in (10, 11):
        machine.process(pid, "0::/job\n")
    machine.group("job", V2, 1)
    collector = CgroupCollector(machine.site)

    def read(after: float) -> list[tuple[dict[str, str], float | int | None]]:
        return [(dict(r.identity), r.values["cgroup.oom_kills"]) for r in collector.collect(AT.fromtimestamp(AT.timestamp() + after, UTC))]

    found = [({"node": "node1", "cgroup": "/job", "run": "r"}, 1)]
    assert read(0) == found
    machine.ranks = []
    assert read(KEEP) == found
    assert read(KEEP + 1) == []


class Watching:
    """An OomCollector that looks every second."""

    def __init__(self, machine: Machine) -> None:
        self.watch, self.now = OomCollector(machine.site), AT

    def look(self) -> list[Event]:
        self.now += timedelta(seconds=1)
        return [*self.watch.collect(self.now)]


@pytest.mark.parametrize(("folder", "files", "told"), [("job", V2, "0::/job\n"), ("memory/job", V1, "4:memory:/job\n")])
def test_a_kill_in_the_ranks_group_is_told_at_the_next_look_with_the_run_and_its_ranks(
    machine: Machine, folder: str, files: dict[str, str], told: str
) -> None:
    for pid in (10, 11):
        machine.process(pid, told)
    machine.group(folder, files, 3)
    watching = Watching(machine)
    assert watching.look() == [], "what was counted before happened before"
    machine.ranks.pop()
    machine.group(folder, files, 5)
    (event,) = watching.look()
    assert (event.kind, event.code, event.count, event.run, event.node) == ("oom_kill", "cgroup", 2, "r", "node1")
    assert event.attrs == {"cgroup": "/job", "ranks": "0,1"}, "the one that was killed is gone already"
    assert watching.look() == []


def test_a_rank_that_is_moved_to_another_group_is_followed_there(machine: Machine) -> None:
    machine.process(10, "0::/job\n")
    machine.group("job", V2, 0)
    watching = Watching(machine)
    watching.look()
    machine.process(10, "0::/small\n")
    machine.group("small", V2, 0)
    watching.look()
    machine.group("small", V2, 1)
    assert [e.attrs["cgroup"] for e in watching.look()] == ["/small"]


def test_a_kill_anywhere_on_the_node_is_told_without_a_run(machine: Machine) -> None:
    machine.node_kills(7)
    machine.ranks = []
    watching = Watching(machine)
    assert watching.look() == []
    machine.node_kills(8)
    (event,) = watching.look()
    assert (event.code, event.count, event.run, event.message) == ("node", 1, "", "on node1")
    assert watching.look() == []


def test_the_same_kill_seen_by_an_agent_that_was_started_again_is_no_second_event(machine: Machine) -> None:
    machine.node_kills(7)
    watching, other = Watching(machine), Watching(machine)
    watching.look()
    other.look()
    machine.node_kills(8)
    assert watching.look()[0].id == other.look()[0].id


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A real control group of this machine with 16 MiB of memory."""
    for root, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / f"surefoot-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(16 << 20))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), 9)
        group.rmdir()
        return
    pytest.skip("needs root and the memory controller")


def test_a_real_process_that_outgrows_its_group_is_seen_to_be_killed(small_group: Path) -> None:
    import subprocess
    import sys

    greedy = "import sys; sys.stdin.readline(); x = bytearray(64 << 20)"
    with subprocess.Popen([sys.executable, "-S", "-c", greedy], stdin=subprocess.PIPE) as child:
        (small_group / "cgroup.procs").write_text(str(child.pid))
        ranks = (RankProcess("r", 3, child.pid, 1),)
        watch = OomCollector(replace(Site("node1"), ranks=lambda: ranks))
        assert [*watch.collect(AT)] == []
        child.communicate(b"go\n", timeout=20)
        assert child.returncode == -9
        told = [*watch.collect(AT)]
    mine = [e for e in told if e.run]
    assert [(e.code, e.count, e.attrs["ranks"]) for e in mine] == [("cgroup", 1, "3")]
    assert mine[0].attrs["cgroup"].endswith(small_group.name)


OF_THE_MACHINE, OF_A_CONTAINER = "pid:[4026531836]", "pid:[4026532100]"  # the first is fixed: PROC_PID_INIT_INO


@pytest.mark.parametrize(
    ("space", "log", "known"),
    [
        pytest.param(OF_THE_MACHINE, Path("/dev/null"), {"known_runs": "r"}, id="a log that can be read"),
        pytest.param(OF_THE_MACHINE, Path("/nowhere"), {}, id="no log"),
        pytest.param(OF_THE_MACHINE, Path(__file__), {}, id="a saved log"),
        pytest.param(OF_A_CONTAINER, Path("/dev/null"), {}, id="in a container the ranks have other ids"),
        pytest.param("", Path("/dev/null"), {}, id="whose ids they are cannot be told"),
    ],
)
def test_the_nodes_count_tells_of_which_runs_the_log_would_name_a_rank(
    machine: Machine, space: str, log: Path, known: dict[str, str]
) -> None:
    machine.node_kills(3)
    if space:
        (machine.root / "proc/self/ns").mkdir(parents=True)
        (machine.root / "proc/self/ns/pid").symlink_to(space)
    collector = OomCollector(replace(machine.site, kmsg=log))
    assert list(collector.collect(AT)) == []
    machine.ranks = []  # the one that was killed is gone already
    machine.node_kills(4)
    (event,) = collector.collect(AT + timedelta(seconds=1))
    assert (event.code, event.attrs) == ("node", known)
