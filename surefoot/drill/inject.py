"""The drill's training under `surefoot run`: starting it, and finding the rank to hurt, at the step and in the place that are wanted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.job.tree import send
from exporters.sources.ring import parse_header
from pipeline.catalog.fault import Fault
from pipeline.errors import InputError
from surefoot.drill.plan import Located, NotCarriedOut, Pause, Plan
from surefoot.drill.stack import Stack
from surefoot.drill.stage import descendants
from surefoot.hook.layout import ENV_ATTEMPT, ENV_NODE, ENV_RING_DIR, ENV_RUN, HEADER_SIZE, LiveCell, read_live
from surefoot.part_logs import last_line

LOOK_SECONDS = 0.002
STARTING_LOOK_SECONDS = 0.05
STOP_SECONDS = 15.0
REACH_SECONDS = 120.0  # in which the training must come to the fault, where the drill's own timeout is not longer
TORCHRUN: Final = "torch.distributed.run"
BARE_RESTARTS = 3
NAMES = ("node-a", "node-b", "node-c")  # of the nodes of a training over several
LOSSES = "losses.jsonl"
FINISH_SECONDS = 90.0  # beyond twice what its steps take


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank as its ring shows it."""

    attempt: str
    pid: int
    cell: LiveCell


@dataclass(frozen=True, slots=True)
class Subject:
    """A training under a launcher: the launcher's process, its run id, the folder of its output; those of other nodes, too."""

    process: subprocess.Popen[bytes]
    run: str
    out: Path
    others: tuple[subprocess.Popen[bytes], ...] = ()

    @property
    def losses(self) -> Path:
        """One JSON line a completed step of rank 0."""
        return self.out / LOSSES

    @property
    def ended(self) -> bool:
        """The launcher is gone."""
        return self.process.poll() is not None

    def finished(self, plan: Plan, pause: Pause = time.sleep) -> bool:
        """Wait for its end; whether that came in time and in good order."""
        deadline = time.monotonic() + FINISH_SECONDS + 2 * (plan.steps * plan.step_time + plan.group_timeout)
        while not self.ended and time.monotonic() < deadline:
            pause(STARTING_LOOK_SECONDS)
        return self.process.poll() == 0

    def stop(self) -> None:
        """End it and wait until nothing of it is left; a launcher ends its ranks."""
        for process in (self.process, *self.others):
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    below = descendants(process.pid)
    for one in below:
        send(one, signal.SIGCONT)  # a stopped rank would not hear that it is to end
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        below += descendants(process.pid)
        process.kill()
        process.wait()
    for one in below:  # but for a launcher killed by force they are gone
        send(one, signal.SIGKILL)


def command(
    plan: Plan,
    out: Path,
    extra: Sequence[str] = (),
    torchrun: Sequence[str] = (),
    launch: Sequence[str] = ("--standalone",),
    module: str = TORCHRUN,
) -> list[str]:
    """The training command, what a user would type after `surefoot run --`; further options of the trainer, and of torchrun.

    `module` is torchrun, or one that takes its options.
    """
    ranks = str(plan.ranks // plan.nodes)
    return [
        *(sys.executable, "-P", "-m", module, *launch, "--nproc-per-node", ranks, *torchrun),
        *("-m", "surefoot.drill.trainer", "--steps", str(plan.steps), "--step-time", str(plan.step_time)),
        *("--checkpoint-every", str(plan.checkpoint_every), "--group-timeout", str(plan.group_timeout), "--out", str(out), *extra),
    ]


def start(plan: Plan, stack: Stack, run: str, extra: Sequence[str] = (), prefix: Sequence[str] = ()) -> Subject:
    """Start the training under the launcher, its output in `train.log` of the run's folder; `extra` as in `command`. `prefix` are
    words of a command that in the end becomes the launcher."""
    out = stack.folder / run
    launcher = [sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "--parent", str(os.getpid())]
    checkpoints = ["--checkpoints", str(out / "checkpoints")]
    words = [*prefix, *launcher, "run", "--run-id", run, *checkpoints, "--", *command(plan, out, extra)]
    return Subject(spawn(words, out, "train", {}), run, out)


def start_bare(plan: Plan, stack: Stack, run: str, module: str = TORCHRUN, further: Sequence[str] = ()) -> Subject:
    """Start the same training under torchrun's own restarts, or those of a like `module`, with `further` options of it.

    Nobody watches: its rings are there only for `inject` to aim by.
    """
    out = stack.folder / run
    words = command(plan, out, ["--resume-newest"], ["--max-restarts", str(BARE_RESTARTS), *further], module=module)
    told = {ENV_RUN: run, ENV_ATTEMPT: f"{run}-1", ENV_RING_DIR: str(stack.settings.ring_dir), ENV_NODE: stack.settings.node}
    return Subject(spawn(words, out, "train", told), run, out)


def spawn(words: Sequence[str], out: Path, name: str, told: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process of the training, its output in a log of that name, `told` in its environment."""
    (out / "checkpoints").mkdir(parents=True, exist_ok=True)
    (out / "tmp").mkdir(exist_ok=True)  # torchrun leaves folders where TMPDIR says
    with (out / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(out / "tmp"), **told},
            start_new_session=True,
        )


@contextmanager
def running(subject: Subject) -> Iterator[Subject]:
    """`subject`; it is stopped with the block."""
    try:
        yield subject
    finally:
        subject.stop()


def anywhere(_: LiveCell) -> bool:
    """Wherever the rank is."""
    return True


def await_step(
    plan: Plan,
    stack: Stack,
    subject: Subject,
    pause: Pause = time.sleep,
    fits: Callable[[LiveCell], bool] = anywhere,
    deadline: float | None = None,
) -> Rank:
    """Wait until the rank has done `inject_after` steps and is where it `fits`, until `deadline` (monotonic; default: `reach` from now).

    Raises NotCarriedOut where the training never gets that far.
    """
    deadline = deadline or time.monotonic() + reach(plan)
    while True:
        if subject.ended:
            raise NotCarriedOut(f"the training ended before the fault: {last_line(subject.out / 'train.log')}")
        if time.monotonic() > deadline:
            raise NotCarriedOut(f"the training did not reach step {plan.inject_after} in {reach(plan):.0f} s: try a longer --timeout")
        rank = look(stack, subject.run, plan.rank)
        if rank and (rank.cell.completed or 0) >= plan.inject_after and fits(rank.cell):
            return rank
        pause(LOOK_SECONDS if rank and rank.cell.completed else STARTING_LOOK_SECONDS)


def reach(plan: Plan) -> float:
    """Seconds in which the training must come to the fault."""
    return max(plan.timeout, REACH_SECONDS)


def place_of(fault: Fault, plan: Plan, stack: Stack) -> Located:
    """Where a fault of the plan's rank lies."""
    node = NAMES[plan.rank * plan.nodes // plan.ranks] if plan.nodes > 1 else stack.settings.node
    return Located(fault.layer, node, plan.rank)


def look(stack: Stack, run: str, rank: int) -> Rank | None:
    """The rank in the newest attempt of `run`; None while it has no ring, or that or its cell is being written."""
    try:
        rings = sorted(stack.folder.glob(f"rings*/{run}-*.{rank}.ring"), key=lambda p: p.stat().st_mtime_ns)
        head = rings[-1].read_bytes()[:HEADER_SIZE] if rings else b""
        header = parse_header(head)
    except (InputError, FileNotFoundError):
        return None
    cell = read_live(memoryview(head)) if len(head) == HEADER_SIZE else None
    return cell and Rank(header.attempt, header.pid, cell)
