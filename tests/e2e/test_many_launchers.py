"""One run over several nodes, each a real launcher under its own node name, brought together by a real stack."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import utcnow
from pipeline.queries.actions_of import actions_of
from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.run_incidents import run_incidents
from pipeline.queries.run_transitions import run_transitions
from pipeline.records import ActionTransition, AttemptTransition, IncidentTransition, Request
from pipeline.store import Store
from surefoot.drill import stack as stacks

HOLES = ("{node_rank}", "{nnodes}", "{master}")
SCRIPT = """
import os, sys, time
from pathlib import Path
folder, rank, count, first = Path(sys.argv[1]), *sys.argv[2:]
attempt, node = os.environ["SUREFOOT_ATTEMPT_ID"], os.environ["SUREFOOT_NODE"]
with (folder / "told").open("a") as f:
    f.write(f"{attempt} {node} {rank}/{count} {first}\\n")
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    if (folder / f"fail-{attempt}-{node}").exists():
        sys.exit(3)
    if (folder / "finish").exists() or (folder / f"finish-{node}").exists():
        sys.exit(0)
    time.sleep(0.05)
sys.exit(9)
"""


@dataclass
class Effort:
    """A run and its launchers. `folder` is where its commands look for what to do."""

    run: str
    folder: Path
    stack: stacks.Stack
    store: Store
    start: Callable[..., "subprocess.Popen[bytes]"]
    launchers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def launch(self, node: str, nodes: str, told: Sequence[str] = HOLES) -> None:
        words = ["--run-id", self.run, "--nodes", nodes, "--", sys.executable, "-c", SCRIPT, str(self.folder), *told]
        self.launchers[node] = self.start(self.stack, node, *words)

    def begin(self, nodes: str) -> None:
        """Launchers on the nodes a and b, until both carry the first attempt."""
        for node in ("a", "b"):
            self.launch(node, nodes)
        self.until(lambda: self.carried(1) == ["a", "b"])

    def freeze_and_go_on_without(self, node: str, other: str) -> None:
        """The launcher on `node` stops, and `other` fails: the run goes on there alone."""
        os.kill(self.launchers[node].pid, signal.SIGSTOP)
        self.say(f"fail-{self.run}-1-{other}")
        self.until(lambda: self.carried(2) == [other])

    def told(self) -> list[str]:
        """What the commands were told, in the order in which they began."""
        path = self.folder / "told"
        return path.read_text().splitlines() if path.exists() else []

    def say(self, what: str) -> None:
        (self.folder / what).touch()

    def attempts(self, state: str) -> list[AttemptTransition]:
        return [t for t in attempts_of_runs(self.store, [self.run]) if t.new_state == state]

    def carried(self, attempt: int) -> list[str]:
        """The nodes on which an attempt was begun."""
        return sorted(line.split()[1] for line in self.told() if line.startswith(f"{self.run}-{attempt} "))

    def incidents(self) -> list[IncidentTransition]:
        """The last transition of each incident."""
        return list({i.incident: i for i in run_incidents(self.store, self.run)}.values())

    def resolved(self) -> list[IncidentTransition]:
        """The incidents, once all of them are."""
        found = self.incidents()
        return found if all(i.new_state == "resolved" for i in found) else []

    def actions(self, state: str) -> list[ActionTransition]:
        return [a for a in actions_of(self.store, [], [self.run]) if a.new_state == state]

    def states(self) -> list[str]:
        return [t.new_state for t in run_transitions(self.store, self.run)]

    def heard(self, node: str) -> list[dict[str, Any]]:
        """Signs of life of the launcher on `node`."""
        sql = "SELECT state FROM beats WHERE component = 'launcher' AND run = {run:String} AND node = {node:String}"
        return self.store.query(sql, {"run": self.run, "node": node})

    def codes(self) -> dict[str, int]:
        return {node: process.wait(60) for node, process in self.launchers.items()}

    def until(self, what: Callable[[], Any], seconds: float = 60.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := what()):
            logs = {path.stem: path.read_text()[-1500:] for path in self.folder.glob("*.log")}
            assert time.monotonic() < deadline, f"not within {seconds} s: {self.told()} {logs}"
            time.sleep(0.1)
        return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stacks.Stack]:
    settings = {"recovery": {"gather": 4.0}, "agent": {"interval": 1.0}}
    running = stacks.start(tmp_path_factory.mktemp("many"), {**settings, "agent": {"port": stacks.free_ports(1)[0], "interval": 1.0}})
    yield running
    running.stop()


@pytest.fixture
def effort(stack: stacks.Stack, tmp_path: Path, request: pytest.FixtureRequest, start_launcher: Callable[..., Any]) -> Iterator[Effort]:
    store = Store.connect(stack.settings)
    one = Effort(f"r{abs(hash(request.node.name)) % 10**6}", tmp_path, stack, store, start_launcher)
    yield one
    for process in one.launchers.values():
        process.kill()
        process.wait()
    store.close()


def test_two_begin_together_and_where_one_fails_both_begin_anew_as_one_attempt_with_one_incident(effort: Effort) -> None:
    effort.launch("b", "2")
    effort.until(lambda: effort.heard("b"))
    assert effort.told() == [], "one of two waits"
    effort.launch("a", "2")
    effort.until(lambda: len(effort.told()) == 2)
    run = effort.run
    assert sorted(effort.told()) == [f"{run}-1 a 0/2 127.0.0.1", f"{run}-1 b 1/2 127.0.0.1"], "in the order of their names"

    effort.say(f"fail-{run}-1-b")
    effort.until(lambda: len(effort.told()) == 4)
    assert sorted(effort.told()[2:]) == [f"{run}-2 a 0/2 127.0.0.1", f"{run}-2 b 1/2 127.0.0.1"]
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}

    effort.until(lambda: effort.states()[-1] == "finished")
    assert [t for t in effort.states() if t != "started"] == ["finished"]
    assert [(t.attempt, t.node, t.nodes) for t in effort.attempts("issued")] == [(f"{run}-1", "a", "a,b"), (f"{run}-2", "a", "a,b")]
    assert {t.actor for t in effort.attempts("ended")} == {"launcher:a"}, "the first node's launcher speaks for all"
    (last,) = effort.until(effort.resolved)
    assert (last.fault, last.node, last.rank) == ("startup_failure", "b", 1)


def test_a_launcher_that_is_gone_is_named_and_a_spare_takes_its_place(effort: Effort) -> None:
    effort.begin("2")
    effort.launch("c", "2")
    effort.until(lambda: effort.heard("c"))
    effort.launchers["a"].kill()  # the first: who speaks for the run, and its command with it
    effort.say(f"fail-{effort.run}-1-b")
    effort.until(lambda: len(effort.told()) == 4)
    assert sorted(effort.told()[2:]) == [f"{effort.run}-2 b 0/2 127.0.0.1", f"{effort.run}-2 c 1/2 127.0.0.1"]
    effort.say("finish")
    assert effort.codes() == {"a": -9, "b": 0, "c": 0}
    effort.until(lambda: effort.states()[-1] == "finished")
    (ended,) = [t for t in effort.attempts("ended") if t.attempt == f"{effort.run}-1"]
    assert (ended.actor, ended.reason) == ("leader", "a, which speaks for it, is gone")
    (second,) = [t for t in effort.attempts("issued") if t.attempt == f"{effort.run}-2"]
    assert second.reason == "all that go on are ready: b, c; a is left out: its launcher was not ready within 4 s; taken in: c"
    (last,) = effort.until(effort.resolved)
    assert last.node == "b"


def test_two_stop_requests_at_once_stop_every_node_once(effort: Effort) -> None:
    effort.begin("1:2")
    for number in (1, 2):
        asked = Request(intent=f"{effort.run}-{number}", at=utcnow(), kind="stop_run", target=effort.run, actor="ann", reason="enough")
        effort.store.insert([asked], token=asked.intent)
    codes = effort.codes()
    assert set(codes) == {"a", "b"} and len(effort.told()) == 2
    effort.until(lambda: effort.states()[-1] == "stopped")
    assert [t for t in effort.states() if t != "started"] == ["stopped"]


def test_one_that_is_killed_and_started_again_is_taken_in_anew_with_all_the_others(effort: Effort) -> None:
    effort.begin("2")
    effort.launchers["b"].kill()
    effort.launchers["b"].wait()
    time.sleep(3.0)  # longer than clocks may differ: what asks now was not meant by the attempt
    effort.launch("b", "2")
    effort.until(lambda: effort.carried(2) == ["a", "b"])
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}
    effort.until(lambda: effort.states()[-1] == "finished")
    (last,) = effort.until(effort.resolved)
    assert (last.fault, last.node) == ("node_left", "b")


def test_a_first_node_that_was_frozen_and_left_out_says_nothing_of_the_run_any_more_and_waits_as_a_spare(effort: Effort) -> None:
    effort.begin("1:2")
    effort.freeze_and_go_on_without("a", "b")
    os.kill(effort.launchers["a"].pid, signal.SIGCONT)
    effort.until(lambda: "this node waits as a spare" in (effort.folder / "a.log").read_text())
    assert effort.launchers["a"].poll() is None
    (ended,) = effort.attempts("ended")
    assert (ended.attempt, ended.actor) == (f"{effort.run}-1", "leader"), "and a's own command is stopped without a word on the attempt"
    effort.launchers["a"].send_signal(signal.SIGTERM)
    assert effort.launchers["a"].wait(20) == 143
    assert set(effort.states()) == {"started"}, "the run goes on"
    effort.say("finish")
    assert effort.launchers["b"].wait(30) == 0
    effort.until(lambda: effort.states()[-1] == "finished")


def test_a_signal_to_a_frozen_first_node_that_was_left_out_does_not_end_the_run(effort: Effort) -> None:
    effort.begin("1:2")
    effort.freeze_and_go_on_without("a", "b")
    os.kill(effort.launchers["a"].pid, signal.SIGTERM)
    os.kill(effort.launchers["a"].pid, signal.SIGCONT)
    effort.launchers["a"].wait(30)
    assert set(effort.states()) == {"started"}
    assert [t.actor for t in effort.attempts("ended")] == ["leader"]
    effort.say("finish")
    assert effort.launchers["b"].wait(30) == 0


def test_where_one_is_ended_by_a_signal_the_run_goes_on_with_those_that_are_left(effort: Effort) -> None:
    effort.begin("1:2")
    effort.launchers["b"].send_signal(signal.SIGTERM)
    assert effort.launchers["b"].wait(20) == 143
    effort.until(lambda: effort.carried(2) == ["a"])
    (issued,) = [t for t in effort.attempts("issued") if t.launch == 2]
    assert issued.reason == "all that go on are ready: a; b is left out: its launcher ended"
    effort.say("finish")
    assert effort.launchers["a"].wait(30) == 0
    (last,) = effort.until(effort.resolved)
    assert (last.fault, last.node) == ("node_left", "b")


def test_a_signal_to_the_node_that_speaks_ends_the_run_on_all_nodes(effort: Effort) -> None:
    effort.begin("2")
    effort.launch("c", "2")
    effort.until(lambda: "this node waits as a spare" in (effort.folder / "c.log").read_text())
    effort.launchers["a"].send_signal(signal.SIGTERM)
    codes = effort.codes()
    assert (codes["a"], codes["c"]) == (143, 0) and codes["b"] in (0, 143), "b was asked to end, and has no say in how"
    assert [t for t in effort.states() if t != "started"] == ["stopped"]
    assert not effort.incidents()


def test_the_run_finishes_when_the_last_node_has_and_not_with_the_one_that_speaks(effort: Effort) -> None:
    effort.begin("2")
    effort.say("finish-a")
    effort.until(lambda: effort.attempts("ended"))
    time.sleep(3.0)
    assert effort.launchers["a"].poll() is None and set(effort.states()) == {"started"}, "b still works"
    effort.say(f"fail-{effort.run}-1-b")
    effort.until(lambda: effort.carried(2) == ["a", "b"])
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}
    effort.until(lambda: effort.states()[-1] == "finished")
    (last,) = effort.until(effort.resolved)
    assert last.node == "b", "the failure of the last one is still one of the run"


def test_a_node_whose_command_ended_well_may_leave_and_the_others_end_their_work_undisturbed(effort: Effort) -> None:
    for node in ("a", "b"):
        effort.launch(node, "2")
    effort.until(lambda: effort.carried(1) == ["a", "b"])
    effort.say("finish-b")
    effort.until(lambda: {"state": "done"} in effort.heard("b"))
    effort.launchers["b"].send_signal(signal.SIGTERM)
    assert effort.launchers["b"].wait(20) == 0
    time.sleep(5.0)  # longer than a launcher's last word is left alone
    effort.say("finish-a")
    assert effort.launchers["a"].wait(30) == 0
    effort.until(lambda: effort.states()[-1] == "finished")
    assert run_transitions(effort.store, effort.run)[-1].reason == "the command ended well"
    assert effort.carried(2) == [] and not effort.incidents()


def test_finished_work_is_not_run_again_where_who_speaks_for_the_run_is_killed_before_it_said_so(effort: Effort) -> None:
    for node in ("a", "b"):
        effort.launch(node, "2")
    effort.until(lambda: effort.carried(1) == ["a", "b"])
    effort.say("finish-a")
    effort.until(lambda: {"state": "finishing"} in effort.heard("a"))
    effort.launchers["a"].kill()
    effort.say("finish-b")
    assert effort.launchers["b"].wait(60) == 0
    effort.until(lambda: effort.states()[-1] == "finished")
    assert run_transitions(effort.store, effort.run)[-1].actor == "leader"
    assert effort.carried(2) == [] and not effort.incidents()


def test_a_stop_ends_those_that_work_and_the_spare_that_waits(effort: Effort) -> None:
    effort.begin("2")
    effort.launch("c", "2")
    effort.until(lambda: "this node waits as a spare" in (effort.folder / "c.log").read_text())
    asked = Request(intent=f"{effort.run}-1", at=utcnow(), kind="stop_run", target=effort.run, actor="ann", reason="enough")
    effort.store.insert([asked], token=asked.intent)
    assert effort.codes()["c"] == 0 and set(effort.launchers) == {"a", "b", "c"}
    effort.until(lambda: effort.states()[-1] == "stopped")
    (action,) = effort.until(lambda: effort.actions("succeeded"))
    assert action.kind == "stop_run"


def test_what_was_begun_while_nobody_answered_is_adopted_and_one_speaks_for_all(effort: Effort) -> None:
    ingest = effort.stack.part_pid("ingest")
    os.kill(ingest, signal.SIGSTOP)
    try:
        for node in ("a", "b"):
            effort.launch(node, "2", ("-", "-", "-"))
        effort.until(lambda: effort.carried(1) == ["a", "b"])
    finally:
        os.kill(ingest, signal.SIGCONT)
    (issued,) = effort.until(lambda: [t for t in effort.attempts("issued") if t.actor == "leader"])
    assert issued.nodes == "a,b"
    begun, come = "a, b began it while nobody answered them", "the launchers of a, b have come"
    assert issued.reason in (begun, come), "the second where ingest, as it wakes, still holds a call that they made before they began"
    effort.until(lambda: effort.attempts("starting"))
    effort.say("finish-a")
    effort.until(lambda: effort.attempts("ended"))
    time.sleep(2.0)
    assert effort.launchers["b"].poll() is None, "it works on, and is waited for"
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}
    effort.until(lambda: effort.states()[-1] == "finished")
    assert {t.actor for t in effort.attempts("ended")} == {"launcher:a"} and effort.states().count("finished") == 1
    assert not effort.incidents()


def test_a_command_that_must_be_told_its_nodes_waits_for_an_ingest_that_is_slow(effort: Effort) -> None:
    ingest = effort.stack.part_pid("ingest")
    os.kill(ingest, signal.SIGSTOP)
    try:
        for node in ("a", "b"):
            effort.launch(node, "2")
        time.sleep(8.0)
        assert effort.told() == [] and all(one.poll() is None for one in effort.launchers.values())
    finally:
        os.kill(ingest, signal.SIGCONT)
    effort.until(lambda: effort.carried(1) == ["a", "b"])
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}


@pytest.mark.slow
def test_a_control_plane_away_for_a_minute_in_the_middle_of_a_restart_brings_one_attempt_and_one_incident(effort: Effort) -> None:
    effort.begin("2")
    effort.say(f"fail-{effort.run}-1-b")
    effort.until(effort.incidents)
    ingest = effort.stack.part_pid("ingest")
    os.kill(ingest, signal.SIGSTOP)
    time.sleep(60.0)
    os.kill(ingest, signal.SIGCONT)
    effort.until(lambda: len(effort.told()) == 4, 90.0)
    effort.say("finish")
    assert effort.codes() == {"a": 0, "b": 0}
    effort.until(lambda: effort.states()[-1] == "finished")
    assert [t.attempt for t in effort.attempts("issued")] == [f"{effort.run}-1", f"{effort.run}-2"]
    (last,) = effort.until(effort.resolved)
    assert last.node == "b"
