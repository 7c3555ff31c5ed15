"""Real faults of the node, and of the training's own making, by their drills: found by the table of rules, paged once, over once."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.drill import memory

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def assert_right(done: Any) -> None:
    assert done.result["wrong"] == [], done.output
    assert (done.code, done.result["correct"]) == (0, {"detected": True, "located": True, "recovered": True})
    assert [p.split()[0] for p in done.result["pages"]] == ["trigger", "resolve"]
    assert len({p.split()[1] for p in done.result["pages"]}) == 1
    assert sorted(done.losses) == done.steps
    done.assert_nothing_is_left()


def assert_of_the_disk(done: Any, words: str) -> None:
    """The node's fault at the mount: nothing is done about it, it is over after the drill took it away, and the training goes on."""
    assert_right(done)
    result = done.result
    assert (result["action"], result["seconds"]["act"]) == ("", None)
    located = {"layer": "storage", "rank": None, "device": str(done.folder / result["run"] / "checkpoints")}
    assert {k: v for k, v in result["located"].items() if k != "node"} == located
    seconds = result["seconds"]
    assert 0 < seconds["detect"] <= seconds["page"] < seconds["remove"] < seconds["recover"]
    assert not any("checkpoint of step" in line and words not in line for line in done.log.splitlines())


def assert_of_memory(done: Any) -> None:
    """A rank that dies of it is restarted, in the one incident."""
    assert_right(done)
    assert (done.result["action"], done.result["located"]["layer"], done.result["located"]["rank"]) == ("restart_run", "kernel", 1)


def assert_not_found_yet(done: Any, fault: str) -> None:
    assert done.result["wrong"] == [], done.output
    assert (done.code, done.result["not_detected_yet"], done.result["incident"]) == (3, fault, "")
    assert done.result["correct"] == {"detected": False, "located": None, "recovered": None}
    assert f"not detected yet: {fault} (" in done.output
    assert sorted(done.losses) == done.steps
    done.assert_nothing_is_left()


@AS_ROOT
def test_a_checkpoint_disk_that_fills_is_found_paged_and_over_once_there_is_room_again(drill: Any) -> None:
    assert_of_the_disk(drill("disk-full"), "No space left on device")


@AS_ROOT
@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize(
    ("kind", "words"), [("disk-full", "No space left on device"), ("read-only", "Read-only file system")], ids=["disk-full", "read-only"]
)
def test_five_of_five_drills_of_the_disk_are_right(drill: Any, kind: str, words: str, turn: int) -> None:
    assert_of_the_disk(drill(kind), words)


@AS_ROOT
@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_five_of_five_ranks_that_outgrow_their_memory_are_restarted_in_one_incident(drill: Any, turn: int) -> None:
    with memory.group() as mine:
        groups = mine.folder.parent
    assert_of_memory(drill("oom"))
    assert list(groups.glob("surefoot-drill-*")) == []


@pytest.mark.slow
def test_a_slow_rank_is_not_found_yet_and_taken_for_nothing_else(drill: Any) -> None:
    done = drill("slow")
    assert_not_found_yet(done, "gpu_slow")


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_is_not_found_yet_and_is_really_none(drill: Any) -> None:
    done = drill("nan")
    assert_not_found_yet(done, "loss_nan")
    assert done.losses[40] < 10 and math.isnan(done.losses[109])


@AS_ROOT
@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 15, 9], ids=["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("kind", ["disk-full", "oom"])
def test_a_drill_that_is_ended_in_the_middle_leaves_no_mount_and_no_process(
    tmp_path: Path, assert_nothing_is_left: Callable[[Path], None], kind: str, number: int
) -> None:
    with memory.group() as mine:
        groups = mine.folder.parent
    argv = [sys.executable, "-P", "-u", "-m", "surefoot", "--log-level", "warning", "drill", kind, "--keep", str(tmp_path / "d")]
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    deadline = time.monotonic() + 90
    while "injected" not in (tmp_path / "out").read_text():
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "out").read_text()
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == (-9 if number == 9 else 128 + number)
    while number == 9 and time.monotonic() < deadline:  # its stack and its training hear of it by themselves
        try:
            assert_nothing_is_left(tmp_path / "d")
        except AssertionError:
            time.sleep(0.2)
        else:
            break
    assert_nothing_is_left(tmp_path / "d")
    with memory.group() as mine:
        assert list(groups.glob("surefoot-drill-*")) == [mine.folder]
