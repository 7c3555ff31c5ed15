"""The drills' training, really run: two ranks over gloo, stopped, resumed, compared."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from surefoot.drill.recipe import read_recipe
from surefoot.drill.stack import free_ports
from surefoot.hook import layout

STEPS = 12


@contextmanager
def training(out: Path, attempt: str, *arguments: str, resume: Path | None = None) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Both ranks, as torchrun would start them; killed at the end where they still run."""
    port = str(free_ports(1)[0])
    base = {n: v for n, v in os.environ.items() if not n.startswith("SUREFOOT_")}
    base |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    base |= {layout.ENV_ATTEMPT: attempt, layout.ENV_RING_DIR: str(out / "rings"), layout.ENV_CHECKPOINTS: str(out / "checkpoints")}
    if resume:
        base[layout.ENV_RESUME_FROM] = str(resume)
    command = [sys.executable, "-P", "-m", "surefoot.drill.trainer", "--out", str(out), "--steps", str(STEPS), *arguments]
    ranks = [subprocess.Popen(command, env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def losses(out: Path) -> list[dict[str, Any]]:
    path = out / "losses.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for_step(out: Path, step: int, ranks: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + 60
    while not any(line["step"] >= step for line in losses(out)):
        assert time.monotonic() < until and all(rank.poll() is None for rank in ranks)
        time.sleep(0.02)


def phases_of(ring: Path) -> set[str]:
    data = ring.read_bytes()
    found = set()
    for at in range(layout.HEADER_SIZE, len(data), layout.SLOT_SIZE):
        sequence, kind, flags = layout.SLOT_HEAD.unpack_from(data, at)
        if sequence and kind == layout.KIND_PHASE:
            found.add(layout.PHASES[flags])
        if sequence and kind == layout.KIND_STEP:
            found |= {name for name, ns in zip(layout.PHASES, layout.STEP.unpack_from(data, at)[11:], strict=True) if ns}
    return found


def test_a_run_killed_and_resumed_has_the_losses_of_an_undisturbed_one(tmp_path: Path) -> None:
    calm, hurt = tmp_path / "calm", tmp_path / "hurt"
    pauses = ("--eval-every", "5", "--eval-seconds", "0.05", "--compile-seconds", "0.05", "--checkpoint-seconds", "0.05")
    with training(calm, "calm-1", "--step-time", "0", "--checkpoint-every", "2", *pauses) as ranks:
        assert [rank.wait(60) for rank in ranks] == [0, 0]
    lingers = ("--eval-every", "6", "--eval-seconds", "60")  # after step 5: there it is killed
    with training(hurt, "hurt-1", "--step-time", "0", "--checkpoint-every", "4", *lingers) as ranks:
        wait_for_step(hurt, 5, ranks)
    assert [rank.returncode for rank in ranks] == [-9, -9]
    assert (hurt / "checkpoints" / "step-3" / layout.MARK_NAME).exists()
    with training(hurt, "hurt-2", "--step-time", "0", "--checkpoint-every", "4", resume=hurt / "checkpoints" / "step-3") as ranks:
        assert [rank.wait(60) for rank in ranks] == [0, 0]

    assert [line["step"] for line in losses(hurt) if line["attempt"] == "hurt-2"] == list(range(4, STEPS))
    last = {line["step"]: line["loss"] for line in losses(hurt)}
    assert last == pytest.approx({line["step"]: line["loss"] for line in losses(calm)}, abs=1e-6)
    assert len(last) == STEPS and last[STEPS - 1] < last[0], "it learns"
    assert sorted(path.name for path in (calm / "checkpoints").iterdir()) == ["step-11", "step-7", "step-9"]
    step_phases = {"data", "forward", "backward", "comm_wait", "optimizer"}
    for rank in range(2):
        assert phases_of(calm / "rings" / f"calm-1.{rank}.ring") == step_phases | {"init", "compile", "eval", "checkpoint"}
        assert phases_of(hurt / "rings" / f"hurt-2.{rank}.ring") == step_phases | {"init", "load_checkpoint", "checkpoint"}


def test_the_entry_point_starts_without_pytorch_so_that_the_monitor_is_there_first() -> None:
    script = "import surefoot.drill.trainer, sys; print('torch' in sys.modules, 'pipeline' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"


def test_a_recipe_needs_a_folder_and_has_the_drills_defaults() -> None:
    wanted = read_recipe(["--out", "x"])
    assert (wanted.step_time, wanted.checkpoint_every, wanted.eval_every) == (0.2, 20, 0)
    with pytest.raises(SystemExit):
        read_recipe([])
