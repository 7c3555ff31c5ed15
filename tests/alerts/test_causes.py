"""One cause, one incident: what came of a full disk or a kill for want of memory is that incident, and what did not is its own."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.detectors.verdict import Verdict
from alerts.incidents.causes import TOLD, Death, because, deaths, explains, part_of
from alerts.incidents.correlate import first_transition
from pipeline.catalog.devices import device_id
from pipeline.catalog.faults import BY_NAME, FILESYSTEM_FULL, HOST_OOM_KILL, RANK_CRASH, Fault
from pipeline.catalog.metrics import HOST, MOUNT
from pipeline.records import Event, FindingTransition, IncidentTransition, NotificationTransition, RunTransition

GB = 10**9
ENOSPC = "OSError: [Errno 28] No space left on device: '/data/ckpt/step-60.partial/model.pt'"
T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


# --- through the leader's tick -----------------------------------------------------------------


class Training:
    """A run of two ranks on node-a that saves its checkpoints on /data, and the agents of two nodes."""

    def __init__(self, world: Any, phase: str = "checkpoint") -> None:
        self.world, self.number, self.launch = world, 0, 1
        self.kills = 3
        self.free = {("node-a", "/"): 500 * GB, ("node-a", "/data"): 500 * GB, ("node-b", "/data"): 500 * GB}
        began = {"old_state": "", "new_state": "started", "reason": "", "actor": "launcher", "at": world.now, "run": "r", "node": "node-a"}
        world.put(RunTransition(**began, checkpoints="/data/ckpt"))
        self.attempt(1, phase)
        self.passes(2)

    def attempt(self, launch: int, phase: str = "forward") -> None:
        self.launch = launch
        self.world.attempt("starting", launch)
        self.world.attempt("running", launch)
        for rank in (0, 1):
            self.world.live(rank, step=61, completed=60, phase=phase, since=self.world.now, launch=launch)

    def recovers(self) -> None:
        """The next attempt is started and completes its first steps."""
        self.world.attempt("ended", self.launch, exit_code=1)
        self.world.wait(1)
        self.attempt(self.launch + 1)
        self.world.tick()
        self.world.steps(3, first=61, launch=self.launch)
        self.ticks(3)

    def dies(self, code: str = "1", error: str = "", rank: int = 1) -> None:
        """A rank ends, and the leader looks."""
        signal = {"signal": "SIGKILL"} if code == "-9" else {}
        self.world.exits(rank, code, self.launch, error=error, **signal)
        self.world.tick()

    def oom(self, node: str = "node-a", kind: str = "oom_kill", code: str = "cgroup", **attrs: str) -> None:
        """Something is killed for want of memory, and the leader looks."""
        self.number += 1
        whose: dict[str, Any] = {"run": "r", "rank": 1} if code == "rank" else {}
        what = {"kind": kind, "layer": "kernel", "severity": "critical", "node": node, "code": code, "attrs": attrs}
        self.world.put(Event(id=f"oom:{self.number}", at=self.world.now, **what, **whose))
        self.world.tick()

    def prints(self, text: str, node: str = "node-a", attempt: str | None = None) -> None:
        """A line that the launcher has sent on."""
        self.number += 1
        attributes = {"run": "r", "attempt": attempt or f"r-{self.launch}", "stream": "stderr"}
        row = {"Timestamp": self.world.now, "ServiceName": "surefoot.run", "Body": text}
        row |= {"ResourceAttributes": {"host.name": node}, "LogAttributes": attributes}
        self.world.store.insert_rows("logs", [row], token=f"logs:{self.number}")

    def ticks(self, times: int, seconds: float = 0.5) -> None:
        for _ in range(times):
            self.world.wait(seconds)
            try:
                self.world.tick()
            except self.world.Killed:
                self.world.restart_jobs()

    def passes(self, times: int) -> None:
        """Passes of both agents, each ten seconds after the one before and followed by a look of the leader."""
        for _ in range(times):
            self.world.wait(10)
            self.number += 1
            devices, mounts, hosts = [], [], []
            for node in ("node-a", "node-b"):
                kills = self.kills if node == "node-a" else 3
                well = {"oom_kills": kills, "load1": 1, "cpu_count": 2, "boot": 1e9, "cpu_busy": 100}
                hosts.append({"device_id": device_id(HOST, {"node": node}), "ts": self.world.now, "node": node, **well})
            for (node, point), free in self.free.items():
                number = device_id(MOUNT, {"node": node, "mount_point": point, "source": "dev"})
                attrs = {"mount_point": point, "source": "dev", "type": "ext4"}
                devices.append(
                    {"device_id": number, "family": "mount", "node": node, "name": "x", "attrs": attrs, "seen_at": self.world.now}
                )
                sizes = {"size": 1000 * GB, "free": free, "inodes": 1000, "inodes_free": 900, "read_only": 0}
                mounts.append({"device_id": number, "ts": self.world.now, "node": node, **sizes, "probe_ok": 1, "probe_time": 0.001})
            for table, rows in (("devices", devices), ("mount_raw", mounts), ("host_raw", hosts)):
                self.world.store.insert_rows(table, rows, token=f"{table}:{self.number}")
            for _ in range(2):  # where the leader is killed it comes back
                try:
                    self.world.tick()
                except self.world.Killed:
                    self.world.restart_jobs()
                else:
                    break

    @property
    def incidents(self) -> list[IncidentTransition]:
        """The last word on each, by when they were opened, but for those that are part of another."""
        rows = self.world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
        return [i for i in {i.incident: i for i in rows}.values() if not i.merged_into]

    @property
    def told(self) -> list[tuple[str, str]]:
        """Incident and event of what the pager got."""
        query = "SELECT * FROM notifications WHERE receiver = 'pager' AND new_state = 'queued' ORDER BY at"
        return [(n.incident, n.event) for n in self.world.store.read(NotificationTransition, query)]

    def homes(self, fault: str) -> set[str]:
        """The incidents that the findings of `fault` are in, by their last word."""
        rows = self.world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")
        return {f.incident for f in {f.finding: f for f in rows}.values() if f.fault == fault}


def assert_one_of_the_disk(training: Training) -> IncidentTransition:
    (one,) = training.incidents
    assert (one.fault, one.layer, one.run, one.attempt) == ("filesystem_full", "storage", "r", "r-1")
    assert (one.node, one.device, one.rank) == ("node-a", "/data", None)
    assert one.title == "A file system is full: /data on node-a, run r"
    assert one.severity == "critical", "a run has failed, which is worse than a full disk"
    assert training.homes("filesystem_full") == training.homes("rank_crash") == {one.incident}
    return one


@pytest.fixture
def training(world: Any) -> Training:
    return Training(world)


def test_a_training_that_crashes_on_a_full_disk_is_one_incident_about_the_disk_and_is_restarted(training: Training) -> None:
    training.free["node-a", "/data"] = 0
    training.passes(3)
    (before,) = training.incidents
    assert (before.run, before.title) == ("", "A file system is full: /data on node-a")
    training.dies("1", ENOSPC)
    one = assert_one_of_the_disk(training)
    assert set(training.told) == {(before.incident, "trigger"), (before.incident, "resolve"), (one.incident, "trigger")}
    assert [(a.kind, a.incident) for a in training.world.actions()][:1] == [("restart_run", one.incident)]
    training.recovers()
    assert [i.new_state for i in training.incidents] == ["recovering"], "the disk is still full"
    training.free["node-a", "/data"] = 500 * GB
    training.passes(3)
    assert [i.new_state for i in training.incidents] == ["resolved"]
    assert assert_one_of_the_disk(training).recovered_at is not None


def test_a_disk_that_is_found_to_be_full_after_the_crash_and_the_restart_is_the_same_incident_and_one_page(training: Training) -> None:
    training.free["node-a", "/data"] = 0
    training.dies("1", ENOSPC)
    training.recovers()
    (early,) = training.incidents
    assert (early.fault, early.new_state, early.recovered_at is None) == ("rank_crash", "recovering", False), "its cause is still awaited"
    training.passes(2)
    one = assert_one_of_the_disk(training)
    assert one.incident == early.incident
    assert training.told == [(one.incident, "trigger")]


def test_a_crash_whose_full_disk_nobody_sees_is_over_when_the_run_had_recovered(training: Training) -> None:
    """A file that did not fit was deleted again: two passes of ten seconds and five for their way after the crash nothing will come."""
    training.dies("1", ENOSPC)
    crashed = training.world.now
    training.recovers()
    (one,) = training.incidents
    training.passes(2)
    assert training.incidents[0].new_state == "recovering"
    training.ticks(1, 25 - (training.world.now - crashed).total_seconds())
    assert (training.incidents[0].new_state, training.incidents[0].resolved_at) == ("resolved", one.recovered_at)
    assert training.incidents[0].fault == "rank_crash"


def test_a_rank_that_dies_while_it_saves_on_a_full_disk_needs_no_words(training: Training) -> None:
    training.free["node-a", "/data"] = 0
    training.dies("-6")
    training.passes(2)
    assert_one_of_the_disk(training)


def test_what_a_training_prints_before_it_ends_is_its_error_too(world: Any) -> None:
    """Few tell torchrun; the exception itself has ended the phase in which it came."""
    training = Training(world, phase="forward")
    training.free["node-a", "/data"] = 0
    training.passes(3)
    training.prints(f"[rank1]: {ENOSPC}")
    world.wait(1)
    training.dies("1")
    assert_one_of_the_disk(training)


def test_a_line_that_comes_after_the_crash_and_a_disk_that_is_found_after_the_restart_make_one(world: Any) -> None:
    training = Training(world, phase="forward")
    training.free["node-a", "/data"] = 0
    training.dies("1")
    training.prints(ENOSPC)
    training.recovers()
    training.passes(2)
    assert_one_of_the_disk(training)


@pytest.mark.parametrize(
    ("before", "code", "node", "attempt"),
    [
        pytest.param(11.0, "1", "node-a", "r-1", id="too long before"),
        pytest.param(1.0, "-9", "node-a", "r-1", id="killed by somebody"),
        pytest.param(1.0, "1", "node-b", "r-1", id="on another node"),
        pytest.param(1.0, "1", "node-a", "r-0", id="of another attempt"),
    ],
)
def test_a_line_that_did_not_end_it_explains_nothing(world: Any, before: float, code: str, node: str, attempt: str) -> None:
    training = Training(world, phase="forward")
    training.free["node-a", "/data"] = 0
    training.passes(3)
    training.prints(ENOSPC, node, attempt)
    world.wait(before)
    training.dies(code)
    training.ticks(3)
    assert sorted((i.fault, i.run) for i in training.incidents) == [("filesystem_full", ""), ("rank_crash", "r")]


def test_of_two_full_file_systems_the_one_with_the_checkpoints_is_the_cause_and_the_other_its_own_incident(training: Training) -> None:
    training.free |= {("node-a", "/"): 0, ("node-a", "/data"): 0}
    training.passes(3)
    training.dies("1", ENOSPC)
    training.ticks(2)
    own, one = sorted(training.incidents, key=lambda i: i.run)
    assert (own.run, own.device, one.run, one.device) == ("", "/", "r", "/data")


@pytest.mark.parametrize(
    ("place", "code", "error"),
    [
        pytest.param(("node-b", "/data"), "1", ENOSPC, id="another node's disk"),
        pytest.param(("node-a", "/"), "1", "RuntimeError: shapes do not fit", id="neither words nor its checkpoints' disk"),
    ],
)
def test_a_crash_that_a_full_disk_does_not_explain_is_another_incident(
    training: Training, place: tuple[str, str], code: str, error: str
) -> None:
    training.free[place] = 0
    training.passes(3)
    training.dies(code, error)
    training.ticks(2)
    assert sorted((i.fault, i.run) for i in training.incidents) == [("filesystem_full", ""), ("rank_crash", "r")]


def test_a_crash_in_the_middle_of_a_step_is_not_the_full_disks_where_no_word_says_so(world: Any) -> None:
    training = Training(world, phase="forward")
    training.free["node-a", "/data"] = 0
    training.passes(3)
    training.dies("-11")
    training.ticks(2)
    assert sorted((i.fault, i.run) for i in training.incidents) == [("filesystem_full", ""), ("rank_crash", "r")]


def test_a_run_that_crashes_again_on_the_disk_that_is_still_full_has_one_open_incident_which_holds_the_disk(training: Training) -> None:
    training.free["node-a", "/data"] = 0
    training.passes(3)
    training.dies("1", ENOSPC)
    training.recovers()
    training.dies("1", ENOSPC)
    training.ticks(2)
    first, second = training.incidents
    assert (first.new_state, first.attempt) == ("resolved", "r-1")
    assert (second.new_state in ("open", "mitigating"), second.attempt, second.fault) == (True, "r-2", "filesystem_full")
    assert training.homes("filesystem_full") == {second.incident}


# --- kills for want of memory ---


@pytest.mark.parametrize("seconds", [0.6, 1.5, 3.0, 14.0])
def test_a_rank_that_takes_its_time_to_end_after_the_kernel_killed_it_is_one_incident(training: Training, seconds: float) -> None:
    training.oom()
    training.ticks(int(seconds / 0.5))
    training.dies("-9")
    training.ticks(2)
    (one,) = training.incidents
    assert (one.fault, one.run, one.attempt, one.rank) == ("host_oom_kill", "r", "r-1", 1)
    assert training.homes("host_oom_kill") == training.homes("rank_crash") == {one.incident}
    triggers = [incident for incident, event in training.told if event == "trigger"]
    assert triggers[-1] == one.incident
    assert len(triggers) == (1 if seconds < 6 else 2), "for five seconds after it was found nobody is told of the kill alone"


def test_a_kill_that_no_rank_dies_of_is_told_after_five_seconds(training: Training) -> None:
    training.oom()
    training.ticks(11)
    assert (len(training.incidents), training.told) == (1, []), "found after one second"
    training.ticks(1)
    assert [event for _, event in training.told] == ["trigger"]


@pytest.mark.parametrize(
    ("seconds", "code", "node"),
    [
        pytest.param(16.0, "-9", "node-a", id="a quarter of a minute later"),
        pytest.param(3.0, "-11", "node-a", id="by another signal"),
        pytest.param(7.0, "3", "node-a", id="by itself"),
        pytest.param(3.0, "-9", "node-b", id="on another node"),
    ],
)
def test_a_crash_that_a_kill_does_not_explain_is_another_incident(training: Training, seconds: float, code: str, node: str) -> None:
    training.oom(node)
    training.ticks(int(seconds / 0.5))
    training.dies(code)
    training.ticks(2)
    assert sorted((i.fault, i.run) for i in training.incidents) == [("host_oom_kill", ""), ("rank_crash", "r")]


NOT_OURS = {"known_runs": "r"}  # the log names killed ranks of r
OTHER = {"kind": "oom_victim", "code": "node", "pid": "9", "comm": "compiler", **NOT_OURS}


@pytest.mark.parametrize("first", ["crash", "count", "victim"])
def test_a_rank_that_somebody_kills_while_another_process_is_killed_for_want_of_memory_died_of_no_oom(
    training: Training, first: str
) -> None:
    if first == "crash":
        training.dies("-9")
    if first != "victim":
        training.oom(code="node", **NOT_OURS)
    training.oom(**OTHER)
    training.ticks(2)
    if first != "crash":
        training.dies("-9")
    training.ticks(3)
    kill, crash = sorted(training.incidents, key=lambda i: i.run)
    assert (kill.fault, kill.run, kill.attempt, kill.node, kill.rank) == ("host_oom_kill", "", "", "node-a", None)
    assert (crash.fault, crash.run, crash.rank) == ("rank_crash", "r", 1)
    assert training.homes("host_oom_kill") == {kill.incident}


def test_the_count_of_a_kill_that_the_log_named_makes_no_oom_of_a_later_crash(training: Training) -> None:
    """The events are over after two passes; the count that the first of them read is not, and the log still knows whose kill it was."""
    training.oom(**OTHER)
    training.kills = 4
    training.passes(2)
    training.dies("-9")
    training.ticks(2)
    assert sorted((i.fault, i.run) for i in training.incidents) == [("host_oom_kill", ""), ("rank_crash", "r")]


@pytest.mark.parametrize("early", [True, False])
def test_a_rank_that_the_log_names_after_the_count_or_its_end_died_of_the_kill(training: Training, early: bool) -> None:
    training.oom(code="node", **NOT_OURS)
    if early:
        training.dies("-9")
    training.oom(kind="oom_victim", code="rank", pid="101", comm="python")
    training.oom(**OTHER)
    if not early:
        training.dies("-9")
    training.ticks(3)
    (one,) = [i for i in training.incidents if i.run]
    assert (one.fault, one.run, one.rank) == ("host_oom_kill", "r", 1)
    assert training.homes("rank_crash") == {one.incident}


# --- kill -9 ---


@pytest.mark.parametrize("after", [False, True])
def test_it_is_the_same_wherever_the_leader_dies(new_world: Callable[..., Any], after: bool) -> None:
    world = new_world()
    training = Training(world)
    training.free["node-a", "/data"] = 0
    training.passes(3)
    for nth in (1, 1, 2, 1, 2, 3):  # each new leader dies as well
        world.restart_jobs()
        world.leaders_store = world.mortal(nth, after=after)
        if nth == 1 and not training.homes("rank_crash"):
            world.exits(1, "1", error=ENOSPC)
        training.ticks(1)
    world.restart_jobs()
    world.leaders_store = None
    training.ticks(3)
    one = assert_one_of_the_disk(training)
    assert len({a.action for a in world.actions()}) == 1
    assert [e for i, e in training.told if i == one.incident] == ["trigger"]


# --- the rule alone ----------------------------------------------------------------------------


def cause(fault: Fault, node: str = "a", seconds: float = 0.0, device: str = "/data", under: bool = False) -> Verdict:
    what: dict[str, Any] = {"key": f"{node}/{device}", "detector": "fault_rule", "run": "", "attempt": "", "reason": "x", "located": True}
    runs = frozenset({"r"})
    return Verdict(
        fault=fault,
        onset=T0 + timedelta(seconds=seconds),
        node=node,
        device=device,
        beside=runs,
        under=runs if under else frozenset(),
        **what,
    )


def crashed(node: str = "a", confidence: float = 1.0) -> IncidentTransition:
    what: dict[str, Any] = {"key": "k", "detector": "rank_exit", "run": "r", "attempt": "r-1", "reason": "x", "rank": 1}
    return first_transition(Verdict(fault=RANK_CRASH, onset=T0, node=node, confidence=confidence, **what), "i1", T0)


faults = st.sampled_from([BY_NAME[name] for name in TOLD])
words = st.sampled_from(["", "RuntimeError: x", *(word for told in TOLD.values() for word in told)])
phases = st.sampled_from(["", "forward", "checkpoint"])


@given(faults, words, phases, st.booleans(), st.integers(-(10**6), 10**6), st.sampled_from(["a", "b"]))
def test_a_file_system_explains_a_failure_only_by_its_words_or_by_what_was_being_saved_there(
    fault: Fault, error: str, phase: str, under: bool, seconds: int, node: str
) -> None:
    said = any(word in error for word in TOLD[fault.name])
    expected = node == "a" and seconds <= 300 and (said or (under and phase == "checkpoint"))
    died = [Death("1", phase, error)]
    assert explains(cause(fault, node, seconds, under=under), crashed(), died) is expected


@given(st.integers(-60, 60), st.sampled_from(["", "1", "-9", "-11", "-6"]), st.sampled_from(["a", "b"]))
def test_a_kill_explains_a_failure_close_to_it_on_its_node_that_no_other_signal_brought_about(seconds: int, code: str, node: str) -> None:
    expected = node == "a" and abs(seconds) <= 15 and code in ("", "-9")
    assert explains(cause(HOST_OOM_KILL, node, seconds, ""), crashed(), [Death(code, "", "")]) is expected


@pytest.mark.parametrize(
    ("code", "error", "rank", "expected"),
    [
        pytest.param("-9", "", 1, False, id="the log would have named it"),
        pytest.param("", "", 1, False, id="however it ended"),
        pytest.param("", "", None, True, id="the command itself is no rank"),
        pytest.param("1", "DataLoader worker (pid 4711) is killed by signal: Killed.", 1, True, id="its child may be gone unseen"),
        pytest.param("3", "", 1, False, id="by itself"),
    ],
)
def test_of_a_run_whose_ranks_the_log_names_no_rank_died_of_a_kill_that_was_not_its_own(
    code: str, error: str, rank: int | None, expected: bool
) -> None:
    kill = replace(cause(HOST_OOM_KILL, device=""), evidence={"seen": [{"at": "noon", "code": "node"}], "spared": ["r"]})
    assert explains(kill, replace(crashed(), rank=rank), [Death(code, "", error)]) is expected
    other = replace(kill, evidence={"seen": [{"at": "noon", "code": "node"}], "spared": ["q"]})
    assert explains(other, crashed(), [Death("-9", "", "")]), "of another run nobody knows"


LOADER = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."


@pytest.mark.parametrize(
    ("code", "error", "seen", "place", "expected"),
    [
        pytest.param("3", "", {"code": "node"}, {}, False, id="another process was killed, and the rank gave up by itself"),
        pytest.param("1", LOADER, {"code": "node"}, {}, True, id="the rank's own child was killed, and it says so"),
        pytest.param("1", "", {"code": "cgroup", "run": "r", "cgroup": "/job"}, {}, True, id="a process in the run's control group was"),
        pytest.param("1", "", {"value": 1.0}, {"run": "r", "cgroup": "/job"}, True, id="so the group's count says"),
        pytest.param("-9", "", {"code": "cgroup", "run": "q", "cgroup": "/other"}, {}, False, id="in another run's"),
        pytest.param("-9", "", {"code": "node"}, {"code": "node"}, True, id="killed, and the group is not known"),
        pytest.param("137", "", {"code": "node"}, {}, True, id="killed beneath a shell"),
        pytest.param("", "", {"code": "node"}, {}, True, id="nobody knows how it ended"),
    ],
)
def test_a_rank_that_ended_by_itself_died_of_a_kill_only_where_it_was_in_its_group_or_it_says_so(
    code: str, error: str, seen: dict[str, Any], place: dict[str, Any], expected: bool
) -> None:
    kill = replace(
        cause(HOST_OOM_KILL, seconds=-7, device=""), evidence={"seen": [{"at": "noon", **seen}], "place": {"node": "a", **place}}
    )
    assert explains(kill, crashed(), [Death(code, "", error)]) is expected


def test_what_ended_the_ranks_is_read_from_the_failures_own_evidence() -> None:
    usual: dict[str, Any] = {
        "old_state": "",
        "new_state": "open",
        "reason": "",
        "actor": "d",
        "at": T0,
        "fault": "rank_crash",
        "layer": "l",
    }
    told = {"origin": {"code": "1", "phase": "checkpoint"}, "exits": [{"error": "one"}, {"error": "two"}, {}]}
    mine = FindingTransition(**usual, severity="s", finding="f", key="k", detector="rank_exit", evidence=json.dumps(told))
    other = FindingTransition(**usual, severity="s", finding="g", key="l", detector="fault_rule", evidence=json.dumps(told))
    assert deaths([mine, other]) == [Death("1", "checkpoint", "one two")]
    assert deaths([mine], "three") == [Death("1", "checkpoint", "one two  three")]
    killed = replace(mine, evidence=json.dumps({"origin": {"code": "-9", "phase": ""}, "exits": []}))
    assert deaths([killed], "three") == [Death("-9", "", "")], "it did not end by what it printed"


def test_a_disk_of_many_nodes_or_of_another_runs_is_not_taken_into_a_runs_incident() -> None:
    one = first_transition(cause(FILESYSTEM_FULL), "i2", T0)
    assert part_of(one, crashed())
    assert not part_of(one, crashed("b"))
    what: dict[str, Any] = {"key": "k", "detector": "fault_rule", "attempt": "", "reason": "x", "onset": T0, "fault": FILESYSTEM_FULL}
    assert part_of(first_transition(Verdict(**what, run="r", node="z"), "i3", T0), crashed()), "the run's, of its first node"
    assert not part_of(first_transition(Verdict(**what, run="q", node="a"), "i4", T0), crashed())
    assert not part_of(first_transition(Verdict(**what, run="", node="", device="switch s"), "i5", T0), crashed())


def test_an_incident_whose_cause_is_known_is_as_bad_as_the_worse_of_the_two_and_is_located() -> None:
    said = because(crashed(confidence=0.8), cause(FILESYSTEM_FULL), T0)
    assert (said["severity"], said["confidence"], said["rank"], said["device"]) == ("critical", 1.0, None, "/data")
    assert said["key"] == "filesystem_full|a//data|r"
    killed = because(crashed(confidence=0.8), cause(HOST_OOM_KILL, device=""), T0)
    assert (killed["rank"], killed["confidence"], killed["title"].endswith("rank 1 on a, run r")) == (1, 0.8, True)
