"""All processes that the command started, whatever they did to hide: sessions of their own, double forks, dead parents.

This process is made a *child subreaper* (prctl(2)): a descendant whose parent dies becomes our child, so
nothing can leave the tree. The tree is read from /proc each time; nothing is assumed to last.
"""

import ctypes
import os
import signal
from contextlib import suppress
from typing import Final

from exporters.job.procfs import ZOMBIE, Stat, pids, read_stat

_PR_SET_CHILD_SUBREAPER: Final = 36
_REMEMBERED: Final = 10_000  # exit codes of orphans: those that are wanted are asked for at once


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process. Raises OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot become a child subreaper: {os.strerror(number)}")


class Tree:
    """The descendants of this process, but for its own helpers and their descendants."""

    def __init__(self) -> None:
        self._me = os.getpid()
        self._mine: set[int] = {s.pid for s in _all() if s.ppid == self._me}
        self.reaped: dict[tuple[int, int], int] = {}  # (pid, start) -> exit code, of orphans that we waited for

    def disown(self, pid: int) -> None:
        """`pid` is a helper of ours (or a child that its maker waits for): never stopped, never reaped here."""
        self._mine.add(pid)

    def forget(self, pid: int) -> None:
        """The helper `pid` is gone; its number may come back as somebody else's."""
        self._mine.discard(pid)

    def processes(self, root: int | None = None) -> list[Stat]:
        """The descendants now, parents before children; orphans that ended are reaped first.

        `root` is our direct child of the command: it counts, but whoever spawned it waits for it.
        """
        children: dict[int, list[Stat]] = {}
        for stat in _all():
            children.setdefault(stat.ppid, []).append(stat)
        found = [s for s in children.get(self._me, ()) if s.pid == root or (s.pid not in self._mine and not self._reap(s))]
        for stat in found:  # grows while it is walked: breadth first
            found.extend(children.get(stat.pid, ()))
        return found

    def _reap(self, stat: Stat) -> bool:
        if stat.state not in ZOMBIE:
            return False
        try:
            pid, status = os.waitpid(stat.pid, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid:
            self.reaped[stat.key] = os.waitstatus_to_exitcode(status)
            while len(self.reaped) > _REMEMBERED:
                del self.reaped[next(iter(self.reaped))]
        return bool(pid)


def send(stat: Stat, number: signal.Signals) -> None:
    """Sends a signal to exactly that process: one that took over its pid is left alone. Gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        fd = os.pidfd_open(stat.pid)
        try:
            now = read_stat(stat.pid)
            if now and now.start == stat.start:
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)


def _all() -> list[Stat]:
    return [stat for pid in pids() if (stat := read_stat(pid))]
