"""What the drills' training trains, as its command line says it. Imports nothing slow."""

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recipe:
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
    resume_newest: bool
    group_timeout: float


def read_recipe(arguments: list[str] | None = None) -> Recipe:
    """The recipe that the command line gives; exits with a message at a wrong one."""
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
    parser.add_argument("--resume-newest", action="store_true", help="find the newest checkpoint oneself where no launcher names one")
    parser.add_argument("--group-timeout", type=float, default=0.0, help="seconds a collective may take; 0: PyTorch's default")
    return Recipe(**vars(parser.parse_args(arguments)))
