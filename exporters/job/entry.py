"""`surefoot run -- CMD`: what a launcher is asked for, checked before anything is begun."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from exporters.job import boot
from exporters.job import nodes as placing
from exporters.job.launcher import Launcher
from exporters.job.strays import only_launcher
from pipeline.catalog.runs import check_run
from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.settings import Settings


def run(
    settings: Settings, command: Sequence[str], *, run_id: str | None = None, checkpoints: Path | None = None, nodes: str | None = None
) -> int:
    """Runs `command` to its end, through restarts, and gives its exit code (128 + n where signal n ended it).

    `nodes` ("2", "2:4") is how many nodes the run takes, each with a launcher of its own under the same `run_id`;
    where either is None, Slurm or torchrun's options tell (exporters/job/nodes.py).

    Must be called in the main thread of a process that has nothing else to do. 127 where there is no such
    command, 126 where it may not be executed. Raises InputError for an empty command, and a run id or a count of nodes that cannot be used;
    ControlRefused where nothing was begun since another launcher of the run has our node's name, or its nodes are counted otherwise.
    """
    if not command:
        raise InputError("nothing to run: give the command after --, as in `surefoot run -- torchrun train.py`")
    if shutil.which(command[0]) is None:
        there = Path(command[0]).exists() and os.sep in command[0]
        told = f"{command[0]!r} may not be executed" if there else f"there is no command {command[0]!r}"
        sys.stderr.write(f"surefoot run: {told}\n")
        return boot.NOT_EXECUTABLE if there else boot.NOT_FOUND
    wanted = placing.wanted(nodes, command, os.environ)
    placing.check_found_together(wanted, run_id, command, os.environ)
    run_name = placing.run_id(run_id, command, os.environ, utcnow(), several=wanted.several)
    check_run(run_name)
    with only_launcher(settings.state_dir / "launches", run_name, settings.node) as only:
        return Launcher(settings, list(command), run_name, checkpoints and checkpoints.absolute(), wanted, only).main()
