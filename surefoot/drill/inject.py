"""The drill's training under `surefoot run`: starting it, finding a rank, hurting it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exporters.job.tree import send
from exporters.sources.ring import parse_header
from pipeline.clock import utcnow
from pipeline.errors import InputError
from surefoot.drill.plan import FAULT_OF, Located, NotCarriedOut, Pause, Plan, Truth
from surefoot.drill.stack import Stack
from surefoot.drill.stage import descendants
from surefoot.hook.layout import HEADER_SIZE, LiveCell, read_live
from surefoot.part_logs import last_line

COLLECTIVE_PHASES = frozenset({"comm_wait"})
LOOK_SECONDS = 0.002
STARTING_LOOK_SECONDS = 0.05
STOP_SECONDS = 15.0
REACH_SECONDS = 120.0  # in which the training must come to the fault, where the drill's own timeout is not longer
FINISH_SECONDS = 90.0  # beyond twice what its steps take


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank as its ring shows it."""

    attempt: str
    pid: int
    cell: LiveCell


@dataclass(frozen=True, slots=True)
class Subject:
    """A training under a launcher: the launcher's process, its run id, the folder of its output."""

    process: subprocess.Popen[bytes]
    run: str
    out: Path

    @property
    def losses(self) -> Path:
        """One JSON line a completed step of rank 0."""
        return self.out / "losses.jsonl"

    @property
    def ended(self) -> bool:
        """The launcher is gone."""
        return self.process.poll() is not None

    def finished(self, plan: Plan, pause: Pause = time.sleep) -> bool:
        """Wait for its end; whether that came in time and in good order."""
        deadline = time.monotonic() + FINISH_SECONDS + 2 * plan.steps * plan.step_time
        while not self.ended and time.monotonic() < deadline:
            pause(STARTING_LOOK_SECONDS)
        return self.process.poll() == 0

    def stop(self) -> None:
        """End it and wait until nothing of it is left; the launcher ends its ranks."""
        if self.ended:
            return
        below = descendants(self.process.pid)
        for one in below:
            send(one, signal.SIGCONT)  # a stopped rank would not hear that it is to end
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            below += descendants(self.process.pid)
            self.process.kill()
            self.process.wait()
        for one in below:  # but for a launcher killed by force they are gone
            send(one, signal.SIGKILL)


def command(plan: Plan, out: Path, extra: Sequence[str] = ()) -> list[str]:
    """The training command, what a user would type after `surefoot run --`; `extra` are further options of the trainer."""
    return [
        *(sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(plan.ranks)),
        *("-m", "surefoot.drill.trainer", "--steps", str(plan.steps), "--step-time", str(plan.step_time)),
        *("--checkpoint-every", str(plan.checkpoint_every), "--out", str(out), *extra),
    ]


def start(plan: Plan, stack: Stack, run: str, extra: Sequence[str] = ()) -> Subject:
    """Start the training under the launcher, its output in `train.log` of the run's folder; `extra` as in `command`."""
    out = stack.folder / run
    (out / "checkpoints").mkdir(parents=True)
    (out / "tmp").mkdir()  # torchrun leaves folders where TMPDIR says
    launcher = [sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "--parent", str(os.getpid())]
    with (out / "train.log").open("ab") as log:
        process = subprocess.Popen(
            [*launcher, "run", "--run-id", run, "--checkpoints", str(out / "checkpoints"), "--", *command(plan, out, extra)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(out / "tmp")},
            start_new_session=True,
        )
    return Subject(process, run, out)


@contextmanager
def running(plan: Plan, stack: Stack, run: str) -> Iterator[Subject]:
    """As `start`; the training is stopped with the block."""
    subject = start(plan, stack, run)
    try:
        yield subject
    finally:
        subject.stop()


def inject(plan: Plan, stack: Stack, subject: Subject, pause: Pause = time.sleep) -> Truth:
    """Wait until the rank has done `inject_after` steps, then hurt it.

    A stop lands where the plan wants it: its phase is read again after the signal, and a rank that had
    moved on is let go and stopped anew. Raises NotCarriedOut where the training never gets that far.
    """
    deadline = time.monotonic() + _reach(plan)
    located = Located(FAULT_OF[plan.kind].layer, stack.settings.node, plan.rank)
    while True:
        rank = _await_step(plan, stack, subject, deadline, pause)
        os.kill(rank.pid, signal.SIGKILL if plan.kind == "kill" else signal.SIGSTOP)
        at = utcnow()
        hit = _look(stack, subject.run, plan.rank) or rank
        if plan.kind == "kill" or _fits(plan, hit.cell):
            return Truth(at, rank.attempt, located, hit.cell.phase)
        os.kill(rank.pid, signal.SIGCONT)


def _await_step(plan: Plan, stack: Stack, subject: Subject, deadline: float, pause: Pause) -> Rank:
    while True:
        if subject.ended:
            raise NotCarriedOut(f"the training ended before the fault: {last_line(subject.out / 'train.log')}")
        if time.monotonic() > deadline:
            raise NotCarriedOut(f"the training did not reach step {plan.inject_after} in {_reach(plan):.0f} s: try a longer --timeout")
        rank = _look(stack, subject.run, plan.rank)
        if rank and (rank.cell.completed or 0) >= plan.inject_after and _fits(plan, rank.cell):
            return rank
        pause(LOOK_SECONDS if rank and rank.cell.completed else STARTING_LOOK_SECONDS)


def _reach(plan: Plan) -> float:
    return max(plan.timeout, REACH_SECONDS)


def _fits(plan: Plan, cell: LiveCell) -> bool:
    return plan.kind == "kill" or (cell.phase in COLLECTIVE_PHASES) == (plan.where == "inside")


def _look(stack: Stack, run: str, rank: int) -> Rank | None:
    """The rank in the newest attempt of `run`; None while it has no ring, or that or its cell is being written."""
    try:
        rings = sorted(stack.settings.ring_dir.glob(f"{run}-*.{rank}.ring"), key=lambda p: p.stat().st_mtime_ns)
        head = rings[-1].read_bytes()[:HEADER_SIZE] if rings else b""
        header = parse_header(head)
    except (InputError, FileNotFoundError):
        return None
    cell = read_live(memoryview(head)) if len(head) == HEADER_SIZE else None
    return cell and Rank(header.attempt, header.pid, cell)
