"""What a training pays for its monitor: the CPU time of a real step with it, against the same step without any.

One rank trains with DistributedDataParallel over gloo, as in the drills; blocks of steps with the monitor and
without take turns. The CPU time is that of the whole process: wall time is noisier than the answer. The batch makes a
step of about 6 ms, which is short: the monitor's cost does not grow with the step. Unlike the hook's own bench,
the caches here are those that PyTorch leaves behind.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

from benchmarks.harness import Goal, Result, compare
from surefoot import StepMonitor
from surefoot.drill.recipe import read_recipe
from surefoot.hook import layout

if TYPE_CHECKING:
    from surefoot.drill.training import Job

BATCH = 1024
STEPS = 10  # a block: short, so that both of a pair see the same machine
PAIRS = 201


def run() -> Iterator[Result]:
    """One line; skipped without torch."""
    try:
        import torch.distributed as dist

        from surefoot.drill import training
    except ImportError as e:
        yield Result.skip("training", str(e))
        return
    where = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(dir=where) as folder, patch.dict(os.environ, _alone(folder)):
        monitor = StepMonitor()
        if not monitor.active:
            yield Result.skip("training", monitor.reason)
            return
        job = training.begin(read_recipe(["--out", folder, "--step-time", "0", "--batch", str(BATCH)]), monitor)
        ours, peer = _block(job, monitor, training.step), _block(job, cast(StepMonitor, NoMonitor()), training.step)
        yield compare("training", "CPU of a DDP step with the monitor : without", ours, peer, Goal(1.02, "<="), _us, PAIRS)
        dist.destroy_process_group()


class NoMonitor:
    """What a training without Surefoot has in the monitor's place: nothing, in the same `with` statements."""

    def __init__(self) -> None:
        self._nothing: AbstractContextManager[SimpleNamespace] = nullcontext(SimpleNamespace())

    def step(self, _number: int) -> AbstractContextManager[SimpleNamespace]:
        """Not a step."""
        return self._nothing

    def phase(self, _name: str) -> AbstractContextManager[SimpleNamespace]:
        """Not a phase."""
        return self._nothing

    collective = phase


def _alone(folder: str) -> dict[str, str]:
    """The environment of the only rank of an attempt."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": "0", "WORLD_SIZE": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return group | {layout.ENV_ATTEMPT: "bench-3", layout.ENV_RING_DIR: str(Path(folder) / "rings")}


def _block(job: "Job", monitor: StepMonitor, step: "Callable[[Job, int], float]") -> Callable[[], float]:
    def block() -> float:
        job.monitor = monitor
        began = time.process_time_ns()
        for number in range(STEPS):
            step(job, number)
        return (time.process_time_ns() - began) / STEPS

    return block


def _us(figure: float) -> str:
    return f"{figure / 1e3:.0f}us"
