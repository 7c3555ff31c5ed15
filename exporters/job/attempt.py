"""One attempt on this node: its command, the processes under it, its ranks and its output."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from exporters.job import boot, capture, cells
from exporters.job.exits import describe
from exporters.job.identify import Kin, Place, is_launcher, place, whole
from exporters.job.journal import Journal
from exporters.job.lines import Closing, Report
from exporters.job.procfs import Stat, read_command, read_stat
from exporters.job.ranks import Rank, Ranks
from exporters.job.stop import Stopped, Turn, stop
from exporters.job.tee import Shipper, Tee
from exporters.job.tree import Tree
from pipeline.clock import monotonic, utcnow

_CAPTURE_LIMIT: Final = 2.0  # seconds for the stacks of all ranks together
_QUICK, _SLOW = 0.1, 2.0  # seconds between two looks at the tree: while ranks are missing, and once all are there
_EAGER: Final = 30.0  # seconds after the start, or after an exit, that ranks are looked for quickly; then once a second
_ALONE: Final = 3.0  # seconds after which a command without any RANK is taken for rank 0 itself


@dataclass(frozen=True, slots=True)
class Start:
    """What an attempt is started with."""

    attempt: str
    launch: int
    command: Sequence[str]
    environment: Mapping[str, str]  # of the command, complete
    ring_dir: Path
    resume_from: str = ""
    action: str = ""  # that asked for it
    nodes: Sequence[str] = ()  # of several, all, by node rank
    master: str = ""


@dataclass(slots=True)
class Attempt:
    """A started attempt. `look` must be called often; `woken` brings the ranks whose pidfd became readable."""

    start: Start
    tree: Tree
    journal: Journal
    selector: selectors.BaseSelector
    process: subprocess.Popen[bytes]
    tee: Tee
    root: Stat  # of the command's process, as it was at the start
    pidfd: int
    kin: Kin
    ranks: Ranks
    began: float = field(default_factory=monotonic)
    began_at: datetime = field(default_factory=utcnow)
    _eager_until: float = field(default_factory=lambda: monotonic() + _EAGER)
    _next_look: float = 0.0
    _announced: bool = False
    _alone: bool = False  # the command itself is the rank

    @property
    def name(self) -> str:
        """The attempt's id; that of torchrun's inner restart where there was one."""
        current = self.ranks.current  # asked once: the log shipper's thread looks too
        return self.name_of(current[0]) if current else self.start.attempt

    def name_of(self, rank: Rank) -> str:
        """The attempt id that `rank` writes its steps under."""
        return f"{self.start.attempt}.{rank.place.restarts}" if rank.place.restarts else self.start.attempt

    @property
    def code(self) -> int | None:
        """The command's exit code, negative for a signal; None while it runs."""
        code = self.process.poll()
        if code is not None:
            self.tree.reaped[self.root.key] = code
        return code

    @property
    def offset(self) -> int | None:
        """This node's first rank, once known."""
        return next((r.place.offset for r in self.ranks.all if r.place.offset is not None), None)

    @property
    def summary(self) -> str:
        """The ranks as the control contract writes them."""
        return ",".join(r.summary() for r in sorted(self.ranks.current, key=lambda r: r.place.rank))

    def at_start(self, limit: float) -> bool:
        """Whether no rank has completed a step; where none tells its steps, whether it is younger than `limit` seconds."""
        told = [c for c in cells.cells(self.start.ring_dir, self.start.attempt) if c.step is not None or c.completed is not None]
        return all(c.completed is None for c in told) if told else monotonic() - self.began <= limit

    @property
    def reason(self) -> str:
        """How it ended, for people: the rank that failed first, else the command."""
        first = self.first_failure
        return first if first and self.code != 0 else f"the command {describe(self.code)}"

    @property
    def first_failure(self) -> str:
        """The rank that failed first by itself, and how; "" where none did."""
        first = self.ranks.first_failed()
        if not first or not first.exit:
            return ""
        return f"rank {first.place.rank} {describe(first.exit.code)}" + (f": {first.exit.error}" if first.exit.error else "")

    @property
    def unsettled(self) -> bool:
        """Whether a rank ended whose exit status may still become known."""
        return any(r.ended_at and not r.exit for r in self.ranks.all)

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._announced

    # --- watching -----------------------------------------------------------------------------

    def patience(self) -> float:
        """Seconds until the next look is due."""
        return max(0.0, self._next_look - monotonic())

    def look(self, woken: list[Rank]) -> None:
        """Takes exits of ranks at once, and looks at the tree when that is due."""
        self._settle(woken)
        if self.patience() == 0.0:
            self.scan()

    def scan(self) -> list[Stat]:
        """Reads the tree now: new ranks, and orphans that ended. Gives the descendants that are left."""
        _ = self.code  # waits for the command's process where it ended
        processes = self.tree.processes(self.process.pid)
        for new in self.kin.update(processes):
            self._add(new)
        if not self.ranks.all:
            self._consider_alone(processes)
        here = {s.key for s in processes}
        self._settle([r for r in self.ranks.alive if (r.place.pid, r.place.start) not in here])
        missing = not whole([r.place for r in self.ranks.current if not r.ended_at])
        eager = _QUICK if monotonic() < self._eager_until else 1.0
        self._next_look = monotonic() + (eager if missing else _SLOW)
        return processes

    def told(self, word: Report | Closing) -> None:
        """Takes torchrun's word on a worker."""
        if rank := self.ranks.told(word):
            self.journal.rank_exited(self.name_of(rank), rank)

    def _settle(self, woken: list[Rank]) -> None:
        for rank in self.ranks.ended(woken, self.tree.reaped):
            self.journal.rank_exited(self.name_of(rank), rank)
        if woken:
            self._look_eagerly()

    def _look_eagerly(self) -> None:
        self._eager_until = monotonic() + _EAGER
        self._next_look = min(self._next_look, monotonic() + _QUICK)

    def _add(self, new: Place, seen_at: datetime | None = None) -> None:
        if self._alone:  # a launcher after all: what was taken for a rank is none
            self._alone = False
            self.ranks.close()
            self.ranks.all.clear()
        first = not self.ranks.all
        rank = self.ranks.add(new, seen_at)
        self.journal.rank_started(self.name_of(rank), rank)
        if first:
            self.journal.attempt_is(
                self.start.attempt,
                self.start.launch,
                "running",
                f"rank {new.rank} started",
                ranks=new.world_size or len(self.start.nodes) or 1,  # where no rank tells of the others, each node has one
                resume_from=self.start.resume_from,
            )

    def _consider_alone(self, processes: list[Stat]) -> None:
        """A command of which no process has a RANK: the one that writes a ring is the rank, after a while the command itself."""
        by_pid = {s.pid: s for s in processes}
        for cell in cells.cells(self.start.ring_dir, self.start.attempt):
            if owner := by_pid.get(cell.pid):
                self._add(Place(owner.pid, owner.start, cell.rank))
        late = monotonic() - self.began > _ALONE and not any(is_launcher(read_command(s.pid)) for s in processes)
        if not self.ranks.all and (late or self.code is not None):
            self._add(place(self.root, self.start.environment) or Place(self.root.pid, self.root.start, self._node_rank), self.began_at)
            self._alone = True

    @property
    def _node_rank(self) -> int:
        return self.start.nodes.index(self.journal.node) if self.start.nodes else 0

    # --- acting ---------------------------------------------------------------------------------

    def announce_stop(self, reason: str, action: str = "") -> None:
        """Writes once that the attempt is stopping, before anything is done to it."""
        if not self._announced:
            self._announced = True
            self.journal.attempt_is(self.start.attempt, self.start.launch, "stopping", reason, action=action)

    def forward(self, number: signal.Signals) -> None:
        """Passes a signal on to the command."""
        if self.code is None:
            self.process.send_signal(number)

    def capture(self, turn: Turn) -> None:
        """Takes evidence of every local rank and writes it."""
        places = [r.place for r in self.ranks.alive]
        evidence = capture.live(cells.cells(self.start.ring_dir, self.start.attempt))
        evidence += capture.flight_recorder(places, self.began_at.timestamp())
        evidence += capture.stacks(places, self.tree, py_spy=capture.find_py_spy(), limit=_CAPTURE_LIMIT, turn=turn)
        for one in evidence:
            self.journal.captured(self.name, one)

    def stop(self, *, grace: float, limit: float, turn: Turn) -> Stopped:
        """Ends every process of the attempt; what ranks answer to that is written as our doing."""
        self.ranks.are_stopped()
        pids = {r.place.pid for r in self.ranks.alive}
        return stop(self.scan, pids, grace=grace, limit=limit, turn=turn)

    def leave_nothing(self, limit: float) -> None:
        """Whatever went wrong in watching, too: kills every process, within about `limit` seconds."""
        stop(self._left, (), grace=0.0, limit=limit, turn=time.sleep)

    def _left(self) -> list[Stat]:
        _ = self.code  # waits for the command's process where it ended
        return self.tree.processes(self.process.pid)

    def close(self) -> None:
        """After its end: the last output is passed on, watching ends."""
        self.tee.join(1.0)
        self.ranks.close()
        self.selector.unregister(self.pidfd)
        os.close(self.pidfd)
        self.tree.forget(self.root.pid)


def begin(start: Start, tree: Tree, journal: Journal, selector: selectors.BaseSelector, shipper: Shipper) -> Attempt:
    """Starts the command. Must be called in the main thread: the kernel ends the command when the thread that started it dies.

    Raises OSError where no process can be had.
    """
    tee = Tee(shipper)
    command = [sys.executable, "-I", "-S", boot.__file__, str(os.getpid()), *start.command]
    # At a terminal the command stays in our process group, so that it may read from it; else it gets its own,
    # so that a signal sent to our group reaches it once, through us.
    group = None if os.isatty(0) else 0
    process = subprocess.Popen(command, stdout=tee.stdout, stderr=tee.stderr, env=dict(start.environment), process_group=group)
    tree.disown(process.pid)
    tee.start()
    pidfd = os.pidfd_open(process.pid)
    selector.register(pidfd, selectors.EVENT_READ, None)
    root = read_stat(process.pid) or Stat(process.pid, "X", os.getpid(), 0, 0)
    attempt = Attempt(start, tree, journal, selector, process, tee, root, pidfd, Kin(start.environment), Ranks(selector))
    journal.attempt_is(
        start.attempt,
        start.launch,
        "starting",
        "the command was started",
        resume_from=start.resume_from,
        action=start.action,
        nodes=start.nodes,
        master=start.master,
    )
    return attempt
