"""Whatever happens to the ring, the training goes on; each case is a training process of its own."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot import StepMonitor
from surefoot.hook import layout

TRAIN = """
from surefoot import StepMonitor
monitor = StepMonitor()
for number in range(3):
    with monitor.step(number) as step, monitor.phase("forward"):
        step.loss = 1.0
monitor.close()
print("trained", monitor.active, monitor.reason)
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")


def test_every_misuse_is_swallowed_with_and_without_a_ring(
    rings: Any, inert_without: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = StepMonitor()
    assert recording.active
    inert_without(recording)
    assert recording.errors > 0
    monkeypatch.delenv(layout.ENV_ATTEMPT)
    inert = StepMonitor()
    assert not inert.active and "not started by `surefoot run`" in inert.reason
    inert_without(inert)


def test_a_refused_step_and_an_outer_step_are_lost_but_the_others_are_not(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1):
        pass
    with monitor.step(None) as refused:  # type: ignore[arg-type]
        refused.loss = 5.0
    with monitor.step(2), monitor.step(3):
        pass
    with monitor.step(4):
        pass
    assert [(r["step"], r.get("loss")) for r in rings.records()] == [(1, None), (3, None), (4, None)]
    assert monitor.errors == 1


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"SUREFOOT_RING_DIR": "/proc/no/such"}, "/proc/no"),
        ({"SUREFOOT_RING_DIR": "/dev/null"}, "/dev/null"),
        ({"SUREFOOT_ATTEMPT_ID": "../escape"}, "cannot be a file's name"),
        ({"SUREFOOT_RUN_ID": "x" * 100}, "longer than its field"),
        ({"SUREFOOT_ATTEMPT_ID": "bad-\udcff"}, "surrogates"),
    ],
)
def test_a_ring_that_cannot_be_made_costs_only_telemetry(rings: Any, environ: dict[str, str], why: str) -> None:
    done = rings.run(TRAIN, **environ)
    assert done.returncode == 0 and "trained False no ring:" in done.stdout
    assert why in done.stderr and done.stderr.count("\n") == 1


def test_standard_error_may_be_closed(rings: Any) -> None:
    done = rings.run("import os, sys; os.close(2); sys.stderr = None\n" + TRAIN, SUREFOOT_RING_DIR="/dev/null")
    assert done.returncode == 0 and "trained False" in done.stdout


def test_a_limit_on_file_size_leaves_no_file_behind(rings: Any) -> None:
    done = rings.run("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n" + TRAIN)
    assert done.returncode == 0 and "trained False no ring: [Errno 27]" in done.stdout
    assert list(rings.folder.iterdir()) == []


@needs_root
def test_a_full_tmpfs_leaves_no_file_behind(rings: Any) -> None:
    rings.folder.mkdir()
    script = 'mount -t tmpfs -o size=64k none "$1" && "$2" -W error -c "$3" && ls -A "$1" | wc -l'
    command = ["unshare", "-m", "sh", "-c", script, "sh", str(rings.folder), sys.executable, TRAIN]
    done = subprocess.run(command, env=rings.environ, capture_output=True, text=True, timeout=60, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0].startswith("trained False no ring: [Errno 28]")
    assert done.stdout.split("\n")[1].strip() == "0"


@needs_root
def test_a_folder_that_may_not_be_written_costs_only_telemetry(rings: Any) -> None:
    rings.folder.mkdir(mode=0o755)
    script = TRAIN.replace("monitor = StepMonitor()", "import os; os.seteuid(65534); monitor = StepMonitor()")
    done = rings.run(script)
    assert done.returncode == 0 and "trained False no ring: [Errno 13]" in done.stdout


def test_a_link_in_the_rings_place_is_not_followed(rings: Any, tmp_path: Path) -> None:
    rings.folder.mkdir(mode=0o777)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    rings.path().symlink_to(victim)
    assert not StepMonitor().active
    assert victim.read_text() == "precious"


def test_a_link_in_the_folders_place_is_not_followed(rings: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    rings.folder.symlink_to(tmp_path / "elsewhere")
    assert not StepMonitor().active
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_second_monitor_of_the_same_rank_records_nothing_while_the_first_lives(rings: Any) -> None:
    first, second = StepMonitor(), StepMonitor()
    assert first.active and not second.active
    with first.step(1), second.step(2):
        pass
    assert [r["step"] for r in rings.records()] == [1]


def test_the_ring_of_a_dead_process_is_replaced_one_that_is_no_ring_is_not(rings: Any) -> None:
    assert rings.run(TRAIN).returncode == 0
    old = rings.path().stat().st_ino
    held = rings.path().open("rb")  # as an agent holds it: the number of the file cannot be used again
    assert StepMonitor().active
    assert rings.path().stat().st_ino != old
    held.close()
    rings.path("run-1.1").write_bytes(b"something else")
    os.environ["RANK"] = "1"
    try:
        assert not StepMonitor().active
    finally:
        del os.environ["RANK"]
    assert rings.path("run-1.1").read_bytes() == b"something else"


# C32
def test_a_forked_child_writes_nothing_into_its_parents_ring(rings: Any) -> None:
    script = """
    import os
    from surefoot import StepMonitor
    monitor = StepMonitor()
    with monitor.step(1):
        child = os.fork()
        if child == 0:
            with monitor.step(100), monitor.phase("forward"):
                pass
            monitor.close()
            os._exit(0 if not monitor.active and not StepMonitor().active else 1)
        _, status = os.waitpid(child, 0)
    with monitor.step(2):
        pass
    print(os.waitstatus_to_exitcode(status), monitor.active)
    """
    done = rings.run(script)
    assert done.stdout == "0 True\n", done.stderr
    assert [r["step"] for r in rings.records()] == [1, 2]
    assert (rings.live().step, rings.live().completed) == (2, 2)
    assert rings.path().read_bytes()[layout.CLOSED_OFFSET :][:8] == bytes(8)


def test_a_copied_or_pickled_monitor_records_nothing(rings: Any) -> None:
    import copy
    import pickle

    monitor = StepMonitor()
    for other in (copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        with other.step(100), other.phase("forward"):
            pass
        assert not other.active
    with monitor.step(1):
        pass
    assert [r["step"] for r in rings.records()] == [1]


def test_a_killed_trainer_leaves_a_readable_ring_that_says_where_it_was(rings: Any) -> None:
    script = """
    import time
    from surefoot import StepMonitor
    monitor = StepMonitor()
    for number in range(5):
        with monitor.step(number):
            pass
    with monitor.step(5), monitor.phase("backward"), monitor.collective("all_reduce"):
        print("there", flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, env=rings.environ, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None and trainer.stdout.readline() == "there\n"
        trainer.send_signal(signal.SIGKILL)
    assert [r["step"] for r in rings.records()] == [0, 1, 2, 3, 4]
    live = rings.live()
    assert (live.step, live.completed, live.phase, live.collective) == (5, 4, "comm_wait", "all_reduce")
    assert 0 < time.time_ns() - live.since < 60 * 10**9


def test_a_checkpoint_completed_by_another_thread_is_recorded_with_the_next_step(rings: Any, tmp_path: Path) -> None:
    import threading

    monitor = StepMonitor()
    saved = tmp_path / "step-3"
    saved.mkdir()
    (saved / "model.pt").write_bytes(b"12345")
    thread = threading.Thread(target=monitor.checkpoint_complete, args=(saved, 3))
    thread.start()
    thread.join()
    assert rings.records() == []
    with monitor.step(4):
        pass
    checkpoint, step = rings.records()
    assert (checkpoint["step"], checkpoint["bytes"], checkpoint["path"]) == (3, 5, str(saved))
    assert step["step"] == 4


def test_a_ring_folder_removed_while_training_changes_nothing_for_it(rings: Any) -> None:
    monitor = StepMonitor()
    shutil.rmtree(rings.folder)
    for number in range(3):
        with monitor.step(number), monitor.phase("forward"):
            pass
    assert monitor.errors == 0
