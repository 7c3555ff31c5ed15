"""The launcher around a real torchrun (2 ranks on CPU)."""

import os
import signal
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TORCHRUN = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--nproc-per-node",
    "2",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    "127.0.0.1:0",
]
TRAIN = """
import os, sys, time
from surefoot import StepMonitor
monitor = StepMonitor()
for n in range(600):
    with monitor.step(n):
        time.sleep(0.1)
    print(f"step {n}", flush=True)
"""


@pytest.fixture
def train(tmp_path):
    """The training script's path."""
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return str(path)


def test_a_killed_rank_is_named_its_peer_is_a_consequence_and_a_restart_runs_on(launch, plane, train):
    started = launch(*TORCHRUN, "--tee", "3", train, OMP_NUM_THREADS="1")
    plane.until(lambda p: [line for line in p.lines() if "step 5" in line.body], 60)
    ranks = {r: plane.pid(r) for r in (0, 1)}
    assert plane.transitions("running")[0]["ranks"] == 2
    os.kill(ranks[1], signal.SIGKILL)
    plane.until(lambda p: len(p.events("rank_exited")) == 2)
    exits = {e["rank"]: (e["code"], e["attrs"].get("stopped_by", "")) for e in plane.events("rank_exited")}
    assert exits == {1: ("-9", ""), 0: ("-15", "torchrun")}
    action = plane.ask("restart_run", new_attempt="r-2", launch=2)
    plane.until(lambda p: p.progress(action) == ["accepted", "done"])
    plane.pid(1, "r-2")
    assert plane.transitions("ended")[0]["reason"].startswith("rank 1 killed by SIGKILL")
    assert {line.attributes.get("rank") for line in plane.lines() if "]:step" in line.body} == {0, 1}
    started.process.terminate()
    started.output()


def test_a_stopped_rank_is_shown_by_its_live_cell_and_stacks_before_it_is_killed(launch, plane, train):
    started = launch(*TORCHRUN, train, OMP_NUM_THREADS="1")
    ranks = {r: plane.until(lambda p, r=r: p.pid(r), 60) for r in (0, 1)}
    plane.until(lambda p: [line for line in p.lines() if "step 5" in line.body], 60)
    os.kill(ranks[0], signal.SIGSTOP)
    action = plane.ask("restart_run", new_attempt="r-2", launch=2)
    plane.until(lambda p: p.progress(action) == ["accepted", "done"])
    evidence = {(e["rank"], e["code"]): e["attrs"] for e in plane.events("capture")}
    assert {(0, "live"), (1, "live"), (0, "stacks"), (1, "stacks")} <= set(evidence)
    assert '"step"' in evidence[(0, "live")]["text"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks.values())
    started.process.terminate()
    started.output()


def test_torchruns_own_restart_is_a_new_inner_attempt(launch, plane, train):
    started = launch(*TORCHRUN, "--max-restarts", "1", train, OMP_NUM_THREADS="1")
    plane.until(lambda p: p.events("rank_started"), 60)
    os.kill(plane.pid(1), signal.SIGKILL)
    plane.pid(0, "r-1.1")
    plane.pid(1, "r-1.1")
    assert started.process.poll() is None
    assert [s[2] for s in plane.states()] == ["starting", "running"]
    started.process.terminate()
    started.output()
