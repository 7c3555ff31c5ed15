"""`surefoot run`: a training command under Surefoot's eyes."""

import sys
from pathlib import Path

import click

from pipeline.settings import Settings
from surefoot.options import Folder, RunId


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--run-id",
    type=RunId(),
    help="Name of the training effort; the same name continues it. Default: the Slurm job, torchrun's --rdzv-id, or command and time.",
)
@click.option(
    "--nodes",
    metavar="N | MIN:MAX",
    help="How many nodes it takes, each under a `surefoot run` of its own. Default: torchrun's --nnodes, the Slurm step's nodes, or 1.",
)
@click.option("--checkpoints", type=Folder(), help="Folder of checkpoints; a restart resumes from the newest complete one.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run(settings: Settings, run_id: str | None, nodes: str | None, checkpoints: Path | None, command: tuple[str, ...]) -> None:
    """Run a training command under Surefoot's eyes. The exit code is the command's.

    Over several nodes, one on each: they begin together, restart together, and go on without a node that is lost
    where MIN allows it or a spare waits. In the command {nnodes}, {node_rank} and {master} are filled in.

    \b
    Example:  surefoot run --checkpoints /data/ckpt -- torchrun --nproc-per-node 8 train.py
              srun surefoot run -- torchrun --nnodes {nnodes} --node-rank {node_rank} --master-addr {master} train.py
    """
    if command[0].startswith("-"):  # what is left of options that are none of ours
        raise click.NoSuchOption(command[0], possibilities=["--run-id", "--nodes", "--checkpoints"])
    from exporters.job.entry import run as launch

    sys.exit(launch(settings, command, run_id=run_id, checkpoints=checkpoints, nodes=nodes))
