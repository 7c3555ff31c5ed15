"""Ends every process of an attempt: asks first where there is time, then kills until /proc shows none."""

import signal
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from exporters.job.procfs import Stat
from exporters.job.tree import send
from pipeline.clock import monotonic

_ROUND: Final = 0.01  # seconds between two looks at /proc

Turn = Callable[[float], None]
"""Goes on with other work (exits of ranks, signals) for at most so many seconds."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What came of it: how long it took, and the pids that would not die (in D state) when time was up."""

    seconds: float
    left: tuple[int, ...]


def stop(processes: Callable[[], list[Stat]], ranks: Collection[int], *, grace: float, limit: float, turn: Turn) -> Stopped:
    """Stops all that `processes` lists (parents first), within about `limit` seconds.

    `grace` > 0: SIGTERM (and SIGCONT, since a stopped process does not see it) to all but what ranks
    started, whose pids are `ranks`; what is left after `grace` seconds is killed. 0: killed at once.
    """
    began = monotonic()
    if grace > 0:
        for stat in _above_and_at(processes(), ranks):
            send(stat, signal.SIGTERM)
            send(stat, signal.SIGCONT)
        while processes() and monotonic() - began < grace:
            turn(_ROUND)
    while left := processes():
        if monotonic() - began > limit:
            break
        for stat in left:  # parents first: a launcher must not start new workers for the ones that die
            send(stat, signal.SIGKILL)
        turn(_ROUND)
    return Stopped(monotonic() - began, tuple(s.pid for s in left))


def _above_and_at(processes: list[Stat], ranks: Collection[int]) -> list[Stat]:
    """All but the descendants of ranks: a data loader that dies first would fail a rank that is saving its work."""
    below: set[int] = set()
    chosen = []
    for stat in processes:
        if stat.ppid in below or stat.ppid in ranks:
            below.add(stat.pid)
        else:
            chosen.append(stat)
    return chosen
