"""Keeps asking mounts, and what else may hang, how they are: a hung one costs one stuck thread of a child process and no more."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from exporters.sources.storage import probes
from exporters.sources.storage.probes import DENIED, Answer, Quota, Quotas, Smart, Standing, Usage, Written
from pipeline.clock import monotonic

MAX_HUNG: Final = 64  # probes under way at most; beyond it further mounts are unknown, not ok
_CHILD: Final = (sys.executable, "-I", "-S", str(Path(probes.__file__)))

T = TypeVar("T")


class Probes(Protocol[T]):
    """Where probes run."""

    def ask(self, path: str) -> None: ...
    def answers(self, timeout: float) -> Sequence[Answer[T]]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Probe(Generic[T]):
    """How a mount is. `ok` is None where it could not be asked. `seconds` is how long the last probe took,
    or how long the one that hangs has been waiting. `errno` is that of a probe that failed, 0 where it has none."""

    ok: bool | None
    seconds: float | None
    found: T | None
    errno: int = 0


UNKNOWN: Final[Probe[Any]] = Probe(None, None, None)


class Prober(Generic[T]):
    """Probes mounts, each at most once at a time; those that hang stay asked until they answer."""

    def __init__(self, ways: Probes[T], timeout: float, clock: Callable[[], float] = monotonic) -> None:
        self._ways = ways
        self._timeout = timeout
        self._clock = clock
        self._since: dict[str, float] = {}  # mount points asked and not answered: since when

    def probe(self, mount_points: Iterable[str]) -> dict[str, Probe[T]]:
        """How each of `mount_points` is, in at most the time-out."""
        wanted = list(mount_points)
        self._receive(0.0)  # late answers: those mounts are free to be asked again
        answered: dict[str, Answer[T]] = {}
        asked = self._ask([path for path in wanted if path not in self._since])
        end = self._clock() + self._timeout
        left = self._timeout
        while asked - answered.keys() and left > 0:  # the last look is after the end: what came while we did not run counts
            left = end - self._clock()
            answered.update((a.path, a) for a in self._receive(max(0.0, left)))
        return {path: self._judge(path, answered.get(path)) for path in wanted}

    def hangs(self, mount_point: str) -> bool:
        """Was it asked, and has not answered yet?"""
        return mount_point in self._since

    def close(self) -> None:
        """Lets go of what hangs."""
        self._ways.close()

    def _ask(self, paths: list[str]) -> set[str]:
        asked = set(paths[: max(0, MAX_HUNG - len(self._since))])
        for path in asked:
            self._since[path] = self._clock()
            self._ways.ask(path)
        return asked

    def _receive(self, timeout: float) -> list[Answer[T]]:
        found = list(self._ways.answers(timeout))
        for answer in found:
            self._since.pop(answer.path, None)
        return found

    def _judge(self, path: str, answer: Answer[T] | None) -> Probe[T]:
        if answer is not None and answer.error == DENIED:
            return UNKNOWN
        if answer is not None:
            return Probe(answer.found is not None, answer.seconds, answer.found, answer.errno)
        since = self._since.get(path)
        return UNKNOWN if since is None else Probe(False, self._clock() - since, None)


class ChildProbes(Generic[T]):
    """Probes in a child process, started at the first question; when it is gone, its questions count as failed
    and the next one starts another. `made` makes what was found of the fields of an answer."""

    def __init__(self, command: Sequence[str], made: Callable[..., T]) -> None:
        self._command = command
        self._made = made
        self._child: subprocess.Popen[bytes] | None = None
        self._open: dict[str, None] = {}
        self._buffer = b""

    @property
    def pid(self) -> int | None:
        """The child's, where there is one."""
        return self._child.pid if self._child else None

    def ask(self, path: str) -> None:
        """Begins to probe `path`."""
        self._open[path] = None
        if self._child is None:
            self._start()
        self._write(path)

    def answers(self, timeout: float) -> list[Answer[T]]:
        """The answers that are there, after waiting at most `timeout` seconds for the first."""
        if self._child is None or self._child.stdout is None:
            return self._failed()
        if not select.select([self._child.stdout], [], [], timeout)[0]:
            return []
        data = os.read(self._child.stdout.fileno(), 1 << 16)
        if not data:
            self.close()
            return self._failed()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        found = [answer for line in lines if (answer := self._parse(line))]
        for answer in found:
            self._open.pop(answer.path, None)
        return found

    def close(self) -> None:
        """Ends the child; one that is stuck in the kernel is left to it."""
        if self._child is not None:
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe:
                    pipe.close()
            self._child.kill()
            try:
                self._child.wait(0.5)
            except subprocess.TimeoutExpired:
                self._child.returncode = 0  # it is in uninterruptible sleep: nobody can wait for it
            self._child = None
        self._buffer = b""

    def _start(self) -> None:
        self.close()
        self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")

    def _failed(self) -> list[Answer[T]]:
        found: list[Answer[T]] = [Answer(path, 0.0, "the probing process ended", None) for path in self._open]
        self._open.clear()
        return found

    def _write(self, path: str) -> None:
        if self._child is not None and self._child.stdin is not None:
            try:
                os.write(self._child.stdin.fileno(), json.dumps(path).encode() + b"\n")
            except BrokenPipeError:
                pass  # its end is seen at the next read

    def _parse(self, line: bytes) -> Answer[T] | None:
        try:
            path, seconds, error, number, *found = json.loads(line)
            answer = Answer(path, seconds, error, self._made(*found) if found else None, number)
        except (ValueError, TypeError, RecursionError):
            return None
        told = ((path, str), (seconds, int | float), (error, str), (number, int))
        return answer if all(isinstance(value, kind) for value, kind in told) else None


def usages() -> ChildProbes[Usage]:
    """Asks file systems how full they are."""
    return ChildProbes((*_CHILD, "statvfs"), Usage)


def writes() -> ChildProbes[Written]:
    """Writes a small file to folders."""
    return ChildProbes((*_CHILD, "write"), Written)


def standings() -> ChildProbes[Standing]:
    """Asks what we may do in folders."""
    return ChildProbes((*_CHILD, "folder"), Standing)


def quotas() -> ChildProbes[Quotas]:
    """Asks folders for the quotas that bound what is written there."""
    return ChildProbes((*_CHILD, "quota"), lambda found: Quotas(tuple(Quota(*one) for one in found)))


def smarts() -> ChildProbes[Smart]:
    """Asks NVMe controllers how they are."""
    return ChildProbes((*_CHILD, "nvme"), Smart)
