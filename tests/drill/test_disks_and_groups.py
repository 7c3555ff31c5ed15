"""Real small file systems and control groups: they do what a drill needs, nobody else sees them, and nothing of them stays."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exporters.job.procfs import read_stat
from surefoot.drill import memory

ROOT = os.geteuid() == 0


def python(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False, timeout=60)


ON_A_SMALL_DISK = """
import errno, json, os, sys
from pathlib import Path
from surefoot.drill import disks

def write():
    try:
        (folder / "more").write_bytes(b"x")
    except OSError as e:
        return errno.errorcode[e.errno]
    return "written"

folder, told = Path(sys.argv[1]), {}
disks.unshare()
with disks.mounted(folder, 4 << 20):
    told["bytes"] = disks.fill(folder)
    told["free"] = os.statvfs(folder).f_bavail
    told["full"] = write()
    disks.empty(folder)
    told["emptied"] = write()
    busy, told["waited"] = os.open(folder / "busy", os.O_CREAT | os.O_WRONLY), 0
    def wait(_):
        told["waited"] += 1
        if told["waited"] == 3:
            os.close(busy)
    disks.remount(folder, read_only=True, pause=wait)
    told["read-only"] = write()
    disks.remount(folder, read_only=False)
    told["writable"] = write()
    print(json.dumps(told), flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), 9)
told["after"] = list(folder.iterdir())
print(json.dumps(told))
"""


@pytest.mark.skipif(not ROOT, reason="mounts need root")
@pytest.mark.parametrize("end", ["leave", "die"])
def test_a_small_disk_fills_turns_read_only_and_back_unseen_by_others_and_is_gone_whatever_becomes_of_who_mounted_it(
    tmp_path: Path, end: str
) -> None:
    done = python(ON_A_SMALL_DISK, str(tmp_path), end)
    first, *rest = map(json.loads, done.stdout.splitlines())
    assert first == {
        "bytes": 4 << 20,
        "free": 0,
        "full": "ENOSPC",
        "emptied": "written",
        "waited": 3,
        "read-only": "EROFS",
        "writable": "written",
    }
    assert done.returncode == (0 if end == "leave" else -9), done.stderr
    assert [one["after"] for one in rest] == ([[]] if end == "leave" else [])
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert list(tmp_path.iterdir()) == []


AS_NOBODY = """
import os, sys
import surefoot.drill.compare, surefoot.drill.report, surefoot.drill.run
from surefoot.cli import main
os.setgroups([])
os.setuid(65534)
os.chdir("/")
sys.argv = ["surefoot", "drill", sys.argv[1]]
main()
"""


@pytest.mark.skipif(not ROOT, reason="needs to be root to become nobody")
@pytest.mark.parametrize("kind", ["disk-full", "read-only", "oom"])
def test_who_is_not_root_is_told_so_in_one_line_with_an_exit_code_of_its_own(kind: str) -> None:
    done = python(AS_NOBODY, kind)
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"surefoot: drill {kind} ") and "run it as root" in line


@pytest.fixture
def parent() -> Path:
    """Where groups are made."""
    try:
        with memory.group() as made:
            return made.folder.parent
    except OSError as e:
        pytest.skip(f"needs root and the memory controller: {e}")


def test_a_control_group_ends_with_whatever_is_left_in_it(parent: Path) -> None:
    with memory.group() as made, subprocess.Popen(["sleep", "60"]) as child:
        made.procs.write_text(str(child.pid))
        made.limit(64 << 20)
        assert made.kills == 0 and memory.at(made.folder) == made
        made.limit(None)
        memory._remove(made.folder, 10.0)
        assert child.wait(10) == -9
    assert not made.folder.exists()


def test_the_group_of_a_drill_that_was_killed_is_taken_away_by_the_next_and_that_of_one_that_runs_is_not(parent: Path) -> None:
    stat = read_stat(os.getppid())
    assert stat is not None
    stale, other = parent / f"surefoot-drill-{stat.pid}.{stat.start + 1}", parent / f"surefoot-drill-{stat.pid}.{stat.start}"
    stale.mkdir()
    other.mkdir()
    try:
        with memory.group():
            assert not stale.exists() and other.exists()
    finally:
        other.rmdir()


FAILING = """
import os, sys, torch.distributed as dist
from pathlib import Path
from torch import nn, optim
from surefoot import StepMonitor
from surefoot.drill import saving
root = Path(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=0, world_size=1)
net = nn.Linear(2, 2)
sgd = optim.SGD(net.parameters(), 0.1)
monitor = StepMonitor()
root.touch()
saving.save(root, 3, net, sgd, monitor)
root.unlink()
saving.save(root, 7, net, sgd, monitor)
dist.destroy_process_group()
sys.stderr.flush()
os._exit(0)  # as the drills' trainer does
"""


def test_a_checkpoint_that_cannot_be_written_costs_the_training_that_checkpoint_only(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    done = python(FAILING, str(root), str(tmp_path / "meet"))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "checkpoint of step 3" in line], done.stderr
    assert [path.name for path in root.iterdir()] == ["step-7"]
    shutil.rmtree(root)
