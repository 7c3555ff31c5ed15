"""The training's checkpoints: `step-<n>` holds the state after step n, of every rank; the last three are kept.

A checkpoint that cannot be written (no room, no right to write) is told and given up; the training goes on, as a careful user's does.
"""

import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn

from surefoot import StepMonitor
from surefoot.hook.layout import ENV_CHECKPOINTS

KEPT: Final = 3
_MODEL: Final = "model.pt"


def folder(out: Path) -> Path:
    """Where the checkpoints go: the launcher's folder, else one in `out`."""
    named = os.environ.get(ENV_CHECKPOINTS)
    return Path(named) if named else out / "checkpoints"


def newest(root: Path) -> str:
    """The checkpoint of the highest step in `root`, "" where there is none."""
    found = _steps(root)
    return str(found[-1]) if found else ""


def save(root: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, monitor: StepMonitor) -> None:
    """Write the checkpoint of `step`; every rank calls it. A name without `.partial` is durable, marked or not. Raises no OSError."""
    final = root / f"step-{step}"
    partial = root / f"step-{step}.partial"
    rank, wrote = dist.get_rank(), True
    if rank == 0:
        for old in (partial, final):  # of an attempt that was killed here
            shutil.rmtree(old, ignore_errors=True)
        wrote = _made(partial, step)
    _barrier(monitor)
    try:
        if rank == 0:
            _write({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, partial / _MODEL)
        _write({"random": torch.get_rng_state()}, partial / f"rank-{rank}.pt")
    except FileNotFoundError:  # rank 0 could not make the folder, and has said why
        wrote = False
    except OSError as e:
        wrote = _tell(step, rank, e)
    whole = _all(wrote, monitor)
    if rank == 0 and not (whole and _finish(partial, final, step, monitor)):
        shutil.rmtree(partial, ignore_errors=True)


def load(source: str, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> int:
    """Set `model`, `optimizer` and this rank's random state from the checkpoint in `source`; gives its step."""
    state: dict[str, Any] = torch.load(Path(source) / _MODEL, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(torch.load(Path(source) / f"rank-{rank}.pt", weights_only=True)["random"])
    return int(state["step"])


def _write(state: dict[str, Any], path: Path) -> None:
    written = io.BytesIO()  # PyTorch's writer, on a file that takes no more, would end the process
    torch.save(state, written)
    with path.open("wb") as out:
        out.write(written.getbuffer())
        out.flush()
        os.fsync(out.fileno())


def _barrier(monitor: StepMonitor) -> None:
    with monitor.collective("barrier"):
        dist.barrier()


def _made(partial: Path, step: int) -> bool:
    try:
        partial.mkdir(parents=True)
    except OSError as e:
        return _tell(step, 0, e)
    return True


def _finish(partial: Path, final: Path, step: int, monitor: StepMonitor) -> bool:
    try:
        partial.rename(final)
    except OSError as e:
        return _tell(step, 0, e)
    monitor.checkpoint_complete(final, step)
    _prune(final.parent)
    return True


def _tell(step: int, rank: int, error: OSError) -> bool:
    sys.stderr.write(f"rank {rank}: no checkpoint of step {step}: {error}\n")
    return False


def _all(mine: bool, monitor: StepMonitor) -> bool:
    """Whether it is so on every rank."""
    with monitor.collective("barrier"):
        everywhere = torch.tensor(int(mine))
        dist.all_reduce(everywhere, dist.ReduceOp.MIN)
    return bool(everywhere.item())


def _prune(root: Path) -> None:
    for path in _steps(root)[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def _steps(root: Path) -> list[Path]:
    """The durable checkpoints, by step."""
    found = [path for path in root.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))
