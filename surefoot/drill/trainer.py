"""The drills' training, as a command: `torchrun --nproc-per-node 2 -m surefoot.drill.trainer --out DIR`.

A real data-parallel PyTorch training over gloo, small enough to start fast. The monitor comes first, so that the
agent sees the rank while PyTorch is still being imported.
"""

import os
import sys

from surefoot import StepMonitor
from surefoot.drill.recipe import read_recipe


def main() -> None:
    """Train as the command line says."""
    recipe = read_recipe()
    monitor = StepMonitor()
    with monitor.phase("init"):
        from surefoot.drill import training

        job = training.begin(recipe, monitor)
    training.train(job)
    monitor.close()
    _end()


def _end() -> None:
    """Ends the process, but not by way of the interpreter's end: gloo's threads outlive `destroy_process_group`, and one of them that
    lets go of its last tensor then aborts the process ("terminate called without an active exception", pytorch issue 190489)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
