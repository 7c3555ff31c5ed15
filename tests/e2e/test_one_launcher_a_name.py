"""A run takes each node's name once and one count of nodes: real launchers against a real stack."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.run_transitions import run_transitions
from pipeline.store import Store
from surefoot.drill import stack as stacks

SCRIPT = """
import os, sys, time
from pathlib import Path
folder, who = Path(sys.argv[1]), sys.argv[2]
with (folder / "told").open("a") as f:
    f.write(f"{who} {os.environ['SUREFOOT_ATTEMPT_ID']}\\n")
deadline = time.monotonic() + 90
while time.monotonic() < deadline and not (folder / "finish").exists():
    time.sleep(0.05)
"""


@dataclass
class Launchers:
    """Launchers of one run, each with a name of its own for us, whatever node's name it is given.

    They wait for an ingest that is just starting, unless `control_timeout` (seconds) says otherwise.
    """

    run: str
    folder: Path
    stack: stacks.Stack
    launch: Callable[..., "subprocess.Popen[bytes]"]
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, who: str, node: str, *options: str, control_timeout: float = 60.0) -> None:
        words = ["--run-id", self.run, *options, "--", sys.executable, "-c", SCRIPT, str(self.folder), who]
        self.started[who] = self.launch(self.stack, who, *words, node=node, SUREFOOT_JOB__CONTROL_TIMEOUT=str(control_timeout))

    def told(self) -> list[str]:
        """Whose command began, and in which attempt."""
        path = self.folder / "told"
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def log(self, who: str) -> list[str]:
        return (self.folder / f"{who}.log").read_text().splitlines()

    def refused(self, who: str) -> str:
        """The last words of a launcher that must not have begun."""
        assert self.started[who].wait(60) == 2
        return self.log(who)[-1]

    def until(self, what: Callable[[], Any], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, {who: self.log(who)[-5:] for who in self.started}
            time.sleep(0.1)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stacks.Stack]:
    running = stacks.start(tmp_path_factory.mktemp("names"), {})
    yield running
    running.stop()


@pytest.fixture
def launchers(
    stack: stacks.Stack, tmp_path: Path, request: pytest.FixtureRequest, start_launcher: Callable[..., Any]
) -> Iterator[Launchers]:
    all_of_them = Launchers(f"r{abs(hash(request.node.name)) % 10**6}", tmp_path, stack, start_launcher)
    yield all_of_them
    for process in all_of_them.started.values():
        process.kill()
        process.wait()


def test_a_second_launcher_of_a_name_begins_nothing_also_where_ingest_has_just_lost_its_memory(
    launchers: Launchers, stack: stacks.Stack
) -> None:
    launchers.start("first", "n")
    launchers.until(lambda: launchers.told())
    launchers.start("second", "n")
    why = f"another launcher of run {launchers.run} is heard under the node name n: give each node a name of its own (SUREFOOT_NODE)"
    assert launchers.refused("second") == f"surefoot: nothing was begun: {why}, or end the other launcher"
    assert len([line for line in launchers.log("second") if "waiting for the other launcher to end" in line]) == 1

    os.kill(stack.part_pid("ingest"), signal.SIGKILL)
    launchers.start("third", "n")
    assert why in launchers.refused("third")

    (launchers.folder / "finish").touch()
    assert launchers.started["first"].wait(30) == 0
    assert launchers.told() == [f"first {launchers.run}-1"]
    store = Store.connect(stack.settings)
    launchers.until(lambda: run_transitions(store, launchers.run)[-1].new_state == "finished")
    assert {t.new_state for t in run_transitions(store, launchers.run)} == {"started", "finished"}, "the refused ones wrote nothing of it"
    assert {t.attempt for t in attempts_of_runs(store, [launchers.run])} == {f"{launchers.run}-1"}
    store.close()


def test_a_launcher_started_again_after_a_kill_9_is_let_in_within_seconds(launchers: Launchers) -> None:
    launchers.start("first", "n")
    launchers.until(lambda: launchers.told())
    launchers.started["first"].kill()
    launchers.started["first"].wait()
    launchers.start("second", "n")
    launchers.until(lambda: len(launchers.told()) == 2, 20.0)
    assert launchers.told() == [f"first {launchers.run}-1", f"second {launchers.run}-2"]
    (launchers.folder / "finish").touch()
    assert launchers.started["second"].wait(30) == 0


def test_of_two_that_both_run_since_nobody_could_tell_them_none_is_stopped_and_one_is_warned_also_over_a_restart_of_ingest(
    launchers: Launchers, stack: stacks.Stack
) -> None:
    os.kill(stack.part_pid("ingest"), signal.SIGSTOP)
    for who in ("one", "two"):
        launchers.start(who, "n", control_timeout=1.0)
    launchers.until(lambda: len(launchers.told()) == 2)

    def warned() -> list[str]:
        return [who for who in ("one", "two") for line in launchers.log(who) if "takes another launcher for this one; the command" in line]

    os.kill(stack.part_pid("ingest"), signal.SIGCONT)
    launchers.until(warned)
    time.sleep(3.0)
    assert len(warned()) == 1
    os.kill(stack.part_pid("ingest"), signal.SIGKILL)
    launchers.until(lambda: len(warned()) == 2)
    (launchers.folder / "finish").touch()
    assert [launchers.started[who].wait(30) for who in ("one", "two")] == [0, 0]
    assert launchers.told() == [f"one {launchers.run}-1", f"two {launchers.run}-1"]


def test_of_several_nodes_a_name_that_is_there_and_a_count_that_differs_are_refused(launchers: Launchers) -> None:
    for node in ("a", "b"):
        launchers.start(node, node, "--nodes", "2")
    launchers.until(lambda: len(launchers.told()) == 2)
    launchers.start("again", "a", "--nodes", "2")
    launchers.start("three", "c", "--nodes", "3")
    launchers.start("one", "d")
    assert f"another launcher of run {launchers.run} is heard under the node name a" in launchers.refused("again")
    for who, count in (("three", "3"), ("one", "1")):
        assert f", and with --nodes {count} here: give all its launchers the same" in launchers.refused(who)
        assert f"run {launchers.run} goes with --nodes 2 on " in launchers.refused(who)
    (launchers.folder / "finish").touch()
    assert [launchers.started[node].wait(30) for node in ("a", "b")] == [0, 0]
    assert launchers.told() == [f"a {launchers.run}-1", f"b {launchers.run}-1"]
