"""Asks file systems how full they are, each in its own thread, since a hung one never answers.

Run as a program (by `mounts.ChildProbes`, without site packages) it is the child process that may get
stuck in the agent's place: a thread in uninterruptible sleep would keep the agent from ending. It reads
one JSON text a line, a path, and writes one JSON array a line: path, seconds, error, then size, free,
inodes and inodes free. Standard library only, and none of our packages.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple

DENIED = "permission denied"  # the error of a file system that its owner alone may ask: that says nothing about its health


class Usage(NamedTuple):
    """Bytes and inodes of a file system; `free` is for users that are not root."""

    size: int
    free: int
    inodes: int
    inodes_free: int


class Answer(NamedTuple):
    """What became of one probe: `usage`, or None with the `error`; `seconds` is how long it took."""

    path: str
    seconds: float
    error: str
    usage: Usage | None


def statvfs(path: str) -> Usage:
    """Asks the kernel. Raises OSError; may never return."""
    s = os.statvfs(path)
    return Usage(s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize, s.f_files, s.f_favail)


class ThreadProbes:
    """Probes in daemon threads of this process: one for each `ask` that has not been answered."""

    def __init__(self, probe: Callable[[str], Usage]) -> None:
        self._probe = probe
        self._answers: SimpleQueue[Answer] = SimpleQueue()

    def ask(self, path: str) -> None:
        """Begins to probe `path`; the answer comes from `answers` if it ever comes."""
        threading.Thread(target=self._work, args=(path,), name="probe", daemon=True).start()

    def answers(self, timeout: float) -> list[Answer]:
        """The answers that are there, after waiting at most `timeout` seconds for the first."""
        found: list[Answer] = []
        try:
            found.append(self._answers.get(timeout=max(timeout, 0.0)))
            while True:
                found.append(self._answers.get_nowait())
        except Empty:
            return found

    def close(self) -> None:
        """Threads that hang are left behind."""

    def _work(self, path: str) -> None:
        began = time.monotonic()
        try:
            usage, error = self._probe(path), ""
        except PermissionError:
            usage, error = None, DENIED
        except (OSError, ValueError) as e:  # ValueError: a path that cannot be one
            usage, error = None, str(e)
        self._answers.put(Answer(path, time.monotonic() - began, error, usage))


def main() -> None:
    """Answers until standard input ends, then leaves at once, whatever still hangs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the agent, and our standard input with it
    probes = ThreadProbes(statvfs)
    threading.Thread(target=_write_answers, args=(probes,), daemon=True).start()
    for line in sys.stdin:
        probes.ask(json.loads(line))
    os._exit(0)


def _write_answers(probes: ThreadProbes) -> None:
    while True:
        for answer in probes.answers(60.0):
            line = json.dumps([answer.path, answer.seconds, answer.error, *(answer.usage or ())])
            os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main()
