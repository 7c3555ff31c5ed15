"""Which rank a process of the kernel's log belongs to, remembered beyond its end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from exporters.collector import RankProcess
from exporters.sources import process

KEEP: Final = 120.0  # seconds that a rank is remembered after its process was last known
_MOST_RUNS: Final = 64


class Member(NamedTuple):
    """A rank, and whether the process is the rank itself (or one of its threads), not a descendant."""

    rank: RankProcess
    itself: bool


@dataclass(slots=True)
class RankBook:
    """The ranks of this node by process id. `known` gives those that are there; `proc` is /proc."""

    known: Callable[[], Sequence[RankProcess]]
    proc: Path
    _seen: dict[int, tuple[RankProcess, float]] = field(default_factory=dict)
    _asked: dict[int, Member | None] = field(default_factory=dict)  # since the last look

    def look(self, clock: float) -> None:
        """Takes note of the ranks that are there now. `clock` is any seconds."""
        self._asked.clear()
        for rank in self.known():
            self._seen[rank.pid] = (rank, clock)
        if len(self._seen) > 4096 or any(clock - at > KEEP for _, at in self._seen.values()):
            self._seen = {pid: seen for pid, seen in self._seen.items() if clock - seen[1] <= KEEP}

    def runs(self) -> str:
        """The runs whose ranks the log would name by ids that are known here, with commas between; "" where it counts them otherwise."""
        if not process.pids_are_the_kernels(self.proc):
            return ""
        return ",".join(sorted({rank.run for rank, _ in self._seen.values()})[:_MOST_RUNS])

    def of(self, pid: str | None) -> Member | None:
        """The rank that `pid` (a process, a thread or a descendant of a rank) belongs to; None where it is none's, or cannot be told."""
        if pid is None or not pid.isdecimal() or len(pid) > 10:
            return None
        number = int(pid)
        if number not in self._asked:
            self._asked[number] = self._of(number)
        return self._asked[number]

    def _of(self, pid: int) -> Member | None:
        if found := self._seen.get(pid):
            return Member(found[0], True)
        for n, ancestor in enumerate(process.lineage(self.proc, pid)):
            if found := self._seen.get(ancestor):
                return Member(found[0], n == 0)
        return None
