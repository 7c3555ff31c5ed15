"""The drills' training, as a command: `torchrun --nproc-per-node 2 -m surefoot.drill.trainer --out DIR`.

A real data-parallel PyTorch training over gloo, small enough to start fast. The monitor comes first, so that the
agent sees the rank while PyTorch is still being imported.
"""

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


if __name__ == "__main__":
    main()
