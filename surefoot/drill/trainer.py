"""The drills' training, as a command: `torchrun --nproc-per-node 2 -m surefoot.drill.trainer --out DIR`.

A real data-parallel PyTorch training over gloo, small enough to start fast. The monitor comes first, so that the
agent sees the rank while PyTorch is still being imported.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from surefoot import StepMonitor


@dataclass(frozen=True, slots=True)
class Plan:
    """What to train. Times are seconds; an `*_every` of 0 is never; `step_time` is kept by sleeping in the forward phase."""

    out: Path
    steps: int
    step_time: float
    seed: int
    checkpoint_every: int
    checkpoint_seconds: float
    eval_every: int
    eval_seconds: float
    compile_seconds: float
    batch: int


def plan(arguments: list[str] | None = None) -> Plan:
    """The plan that the command line gives; exits with a message at a wrong one."""
    parser = argparse.ArgumentParser(prog="surefoot.drill.trainer", description="The training that drills run.")
    parser.add_argument("--out", type=Path, required=True, help="folder for losses.jsonl and, by default, checkpoints")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--step-time", type=float, default=0.2, help="seconds a step takes at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-every", type=int, default=20, help="steps; 0: never")
    parser.add_argument("--checkpoint-seconds", type=float, default=0.0, help="seconds a checkpoint takes at least")
    parser.add_argument("--eval-every", type=int, default=0, help="steps; 0: never")
    parser.add_argument("--eval-seconds", type=float, default=0.0, help="seconds an eval takes at least")
    parser.add_argument("--compile-seconds", type=float, default=0.0, help="seconds of work before the first step")
    parser.add_argument("--batch", type=int, default=32, help="samples a step and rank")
    return Plan(**vars(parser.parse_args(arguments)))


def main() -> None:
    """Train as the command line says."""
    wanted = plan()
    monitor = StepMonitor()
    with monitor.phase("init"):
        from surefoot.drill import training

        job = training.begin(wanted, monitor)
    training.train(job)
    monitor.close()


if __name__ == "__main__":
    main()
