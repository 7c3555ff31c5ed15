"""The ranks of one attempt: seen when they start, and at once when they end."""

import os
import selectors
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from exporters.job.exits import exit_code, read_error_file
from exporters.job.identify import Place
from exporters.job.lines import Closing, Report
from exporters.job.procfs import read_stat
from pipeline.clock import monotonic, utcnow

LAUNCHER: Final = "launcher"
TORCHRUN: Final = "torchrun"
_PATIENCE: Final = 0.5  # seconds that an exit without a known status waits for torchrun's own word on it


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank ended. `code` is negative for a signal, None where it could not be learnt."""

    at: datetime
    code: int | None
    stopped_by: str = ""  # launcher, torchrun; "" where it ended by itself or by a stranger's hand
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether this rank failed by itself (what its launchers did to it is a consequence)."""
        return self.code != 0 and not self.stopped_by


@dataclass(slots=True)
class Rank:
    """A rank's process while it lives and after. `ended_at` comes first; `exit` once its status is known or given up."""

    place: Place
    seen_at: datetime
    pidfd: int | None = None
    ended_at: datetime | None = None
    patient_until: float = 0.0
    exit: Exit | None = None

    def summary(self) -> str:
        """As the control contract writes it: "0:alive:4711", "1:exit:-9", "1:exit:" where the status is not known."""
        if self.ended_at is None:
            return f"{self.place.rank}:alive:{self.place.pid}"
        code = self.exit.code if self.exit else None
        return f"{self.place.rank}:exit:{'' if code is None else code}"


class Ranks:
    """Watches the processes of ranks through `selector` (key data: the Rank)."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.all: list[Rank] = []
        self._stopping = False
        self._selector = selector
        self._closing: set[int] = set()  # pids that torchrun said it is ending
        self._before: set[tuple[int, int]] = set()  # (pid, start) of those that had ended before the launcher began to end them

    def are_stopped(self) -> None:
        """From now on the launcher ends them. A rank that had ended before, and only has not told how, was not ended by it."""
        if not self._stopping:
            self._stopping = True
            self._before = {(r.place.pid, r.place.start) for r in self.all if r.ended_at}

    @property
    def current(self) -> list[Rank]:
        """The ranks of the newest (inner) start: of each rank its last process."""
        newest = max((r.place.restarts for r in self.all), default=0)
        return list({r.place.rank: r for r in self.all if r.place.restarts == newest}.values())

    @property
    def alive(self) -> list[Rank]:
        """Those whose process has not ended."""
        return [r for r in self.all if r.ended_at is None]

    def first_failed(self) -> Rank | None:
        """Of the newest start, the rank that failed first by itself."""
        failed = [(r.exit.at, i, r) for i, r in enumerate(self.current) if r.exit and r.exit.failed]
        return min(failed)[2] if failed else None

    def add(self, place: Place, seen_at: datetime | None = None) -> Rank:
        """Begins to watch a rank. It may have ended already: then the next `ended` says so."""
        rank = Rank(place, seen_at or utcnow())
        try:
            rank.pidfd = os.pidfd_open(place.pid)
        except OSError:
            rank.ended_at = utcnow()
        else:
            stat = read_stat(place.pid)
            if stat and stat.start == place.start:
                self._selector.register(rank.pidfd, selectors.EVENT_READ, rank)
            else:  # another process has the pid by now
                self._close(rank)
                rank.ended_at = utcnow()
        self.all.append(rank)
        return rank

    def ended(self, woken: list[Rank], reaped: Mapping[tuple[int, int], int]) -> list[Rank]:
        """The ranks whose exit is now known, first failures first. `woken`: those whose pidfd became readable.

        `reaped` has the exit codes of orphans that we waited for, by (pid, start).
        """
        now = utcnow()
        for rank in woken:
            rank.ended_at = rank.ended_at or now
        waiting = [r for r in self.all if r.ended_at and not r.exit]
        known = [(r, code) for r in waiting if (code := self._code(r, reaped)) is not None or self._out_of_patience(r)]
        known.sort(key=lambda pair: pair[1] in (0, -signal.SIGTERM))  # of exits seen together, SIGTERM is the consequence
        for rank, code in known:
            self._settle(rank, code)
        return [rank for rank, _ in known]

    def told(self, word: Report | Closing) -> Rank | None:
        """Takes torchrun's own word; gives the rank whose exit it settles, where nothing else told."""
        if isinstance(word, Closing):
            self._closing.add(word.pid)
            return None
        rank = next((r for r in self.all if r.place.pid == word.pid and r.ended_at and not r.exit), None)
        if rank:
            self._settle(rank, word.code)
        return rank

    def close(self) -> None:
        """Stops watching."""
        for rank in self.all:
            self._close(rank)

    def _code(self, rank: Rank, reaped: Mapping[tuple[int, int], int]) -> int | None:
        key = rank.place.pid, rank.place.start
        if key in reaped:
            return reaped[key]
        return exit_code(*key, rank.pidfd) if rank.pidfd is not None else None

    def _out_of_patience(self, rank: Rank) -> bool:
        rank.patient_until = rank.patient_until or monotonic() + _PATIENCE
        if rank.pidfd is not None:
            self._unregister(rank)
        return monotonic() > rank.patient_until

    def _settle(self, rank: Rank, code: int | None) -> None:
        error = read_error_file(rank.place.error_file) if rank.place.error_file and code else ""
        rank.exit = Exit(rank.ended_at or utcnow(), code, self._stopped_by(rank, code), error)
        self._close(rank)

    def _stopped_by(self, rank: Rank, code: int | None) -> str:
        if self._stopping and (rank.place.pid, rank.place.start) not in self._before:
            return LAUNCHER
        peers = [r for r in self.all if r is not rank and r.place.restarts == rank.place.restarts]
        failed_before = any(r.exit and r.exit.failed for r in peers)
        ended_by_it = code == -signal.SIGTERM or rank.place.pid in self._closing
        return TORCHRUN if code != 0 and failed_before and ended_by_it else ""

    def _unregister(self, rank: Rank) -> None:
        if rank.pidfd is not None and rank.pidfd in self._selector.get_map():
            self._selector.unregister(rank.pidfd)

    def _close(self, rank: Rank) -> None:
        if rank.pidfd is not None:
            self._unregister(rank)
            os.close(rank.pidfd)
            rank.pidfd = None
