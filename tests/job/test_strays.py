"""A launcher that was killed leaves ranks behind: the next one of the run on this node ends them, and no other's."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporters.job.strays import only_launcher, strays
from pipeline.errors import InputError
from surefoot.hook import layout

RINGS = Path("/dev/shm/rings-of-this-test")
ORPHAN = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper() -> Iterator[Any]:
    started: list[subprocess.Popen[bytes]] = []

    def start(**environment: str) -> int:
        process = subprocess.Popen(["sleep", "600"], env=os.environ | environment)
        started.append(process)
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def marked(run: str = "r", node: str = "node-a", attempt: str = "r-1", rings: str = str(RINGS)) -> dict[str, str]:
    return {layout.ENV_RUN: run, layout.ENV_NODE: node, layout.ENV_ATTEMPT: attempt, layout.ENV_RING_DIR: rings}


def test_only_what_bears_an_attempt_of_this_run_on_this_node_is_a_stray(sleeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {sleeper(**marked()), sleeper(**marked(attempt="r-7"))}
    for other in (
        marked(run="s"),
        marked(rings="/dev/shm/another"),
        marked(node="node-b"),
        {layout.ENV_RUN: "r", layout.ENV_NODE: "node-a"},
        {},
    ):
        sleeper(**other)
    assert {s.pid for s in strays("r", "node-a", RINGS)} == mine
    assert strays("r", "node-c", RINGS) == []


@pytest.mark.parametrize(("parent", "watched"), [("surefoot", True), ("supervisor", False)])
def test_what_another_launcher_watches_is_none(tmp_path: Path, parent: str, watched: bool) -> None:
    """Two launchers on one machine may have one node name, and folders of their own."""
    program = tmp_path / parent
    program.write_text(f"#!/bin/sh\n{layout.ENV_ATTEMPT}=r-1 sleep 600 &\necho $!\nwait\n")
    program.chmod(0o755)
    environment = {layout.ENV_RUN: "r", layout.ENV_NODE: "node-a", layout.ENV_RING_DIR: str(RINGS)}
    with subprocess.Popen([program, "run"], env=os.environ | environment, stdout=subprocess.PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        try:
            assert (child not in {s.pid for s in strays("r", "node-a", RINGS)}) == watched
        finally:
            os.kill(child, signal.SIGKILL)


def test_of_two_launchers_of_a_run_on_a_node_the_second_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with only_launcher(tmp_path, "r", "node-a") as first:
        assert first
        with only_launcher(tmp_path, "r", "node-b") as elsewhere, only_launcher(tmp_path, "s", "node-a") as another:
            assert elsewhere and another
        refused = only_launcher(tmp_path, "r", "node-a")
        with pytest.raises(InputError, match=f"run r has a launcher on node node-a already, process {os.getpid()}: end it first"), refused:
            pass
    with only_launcher(tmp_path, "r", "node-a") as again:
        assert again
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_refuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with only_launcher(tmp_path / "file", "r", "node-a") as sure:
        assert not sure


def test_what_a_killed_launcher_left_is_ended_by_the_next_one_before_it_begins(launch: Any, plane: Any) -> None:
    first = launch(sys.executable, "-S", "-c", ORPHAN)
    orphan = int(first.process.stdout.readline())
    plane.until(lambda p: p.transitions("running"))
    first.process.kill()
    first.process.wait()
    assert Path(f"/proc/{orphan}").exists(), "its parent was told to end with the launcher; it was not"
    plane.first = 2
    second = launch("sh", "-c", f"cut -d ' ' -f 3 /proc/{orphan}/stat 2>/dev/null || echo gone")
    assert second.output()[0] in (b"gone\n", b"Z\n"), "a zombie where nobody here waits for orphans"
