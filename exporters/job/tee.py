"""The command's output: passed on unchanged, byte for byte, and on the side cut into lines and shipped.

One thread a stream reads and passes on; it hands copies to one thread that cuts and ships. Where that
one is slow, copies are dropped and counted; passing on never waits for it.
"""

import atexit
import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from exporters.job.lines import Closing, Piece, Report, Splitter, pieces, torchrun_word
from pipeline.clock import EPOCH, utcnow

_BLOCK: Final = 1 << 16
_LIMIT: Final = 8 << 20  # bytes of copies that may wait
_LOOK: Final = 0.02  # seconds between two looks at whether all is passed on
_PIPE: Final = 1 << 20  # bytes that the command may be ahead of us: what an ordinary user may ask for
STDOUT, STDERR, MERGED = "stdout", "stderr", "merged"


_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Printed:
    """One record that the command printed."""

    at: datetime
    stream: str
    piece: Piece


@dataclass(frozen=True, slots=True)
class _Copy:
    at: datetime
    stream: str
    data: bytes  # empty: the stream ended


class Shipper:
    """Cuts copies of output into records, for `ship`, and torchrun's words on its workers, for `told`."""

    def __init__(self, ship: Callable[[list[Printed]], None], told: Callable[[Report | Closing], None], limit: int = _LIMIT) -> None:
        self.dropped = 0  # bytes
        self._ship = ship
        self._told = told
        self._limit = limit
        self._waiting: deque[_Copy] = deque()
        self._size = 0
        self._change = threading.Condition()
        self._idle = True
        self._last = EPOCH
        self._splitters: dict[str, Splitter] = {}
        threading.Thread(target=self._run, name="log-shipper", daemon=True).start()

    def put(self, stream: str, data: bytes) -> None:
        """Takes a copy, or counts it as dropped where too much waits."""
        with self._change:
            if self._size + len(data) > self._limit:
                self.dropped += len(data)
                return
            self._waiting.append(_Copy(utcnow(), stream, data))
            self._size += len(data)
            self._change.notify_all()

    def drain(self, seconds: float) -> None:
        """Waits until all that was given is shipped, at most so long."""
        with self._change:
            self._change.wait_for(lambda: self._idle and not self._waiting, seconds)

    def _run(self) -> None:
        while True:
            with self._change:
                self._idle = not self._waiting
                self._change.notify_all()
                self._change.wait_for(lambda: bool(self._waiting))
                self._idle = False
                batch = list(self._waiting)
                self._waiting.clear()
                self._size = 0
            self._pass_on(batch)

    def _pass_on(self, batch: list[_Copy]) -> None:
        printed: list[Printed] = []
        for copy in batch:
            splitter = self._splitters.setdefault(copy.stream, Splitter())
            for line in splitter.feed(copy.data) if copy.data else splitter.finish():
                printed += [Printed(self._stamp(copy.at), copy.stream, piece) for piece in pieces(line)]
                if word := torchrun_word(line):
                    self._told(word)
        self._ship(printed)

    def _stamp(self, at: datetime) -> datetime:
        """`at`, or just after the line before: what came in one read keeps its order wherever it is sorted by time."""
        self._last = max(at, self._last + _MICROSECOND)
        return self._last


class Tee:
    """The pipes of one attempt. Give `stdout` and `stderr` to the command, then call `start`."""

    def __init__(self, shipper: Shipper) -> None:
        merged = _same_file(1, 2)  # one pipe then keeps the order of the two
        read, self.stdout = _pipe()
        self._streams = [(read, 1, MERGED if merged else STDOUT)]
        self.stderr = self.stdout
        if not merged:
            read, self.stderr = _pipe()
            self._streams.append((read, 2, STDERR))
        self._shipper = shipper
        self._threads: list[threading.Thread] = []
        self._passing: set[int] = set()  # sources of which something was read that may not be written yet

    def start(self) -> None:
        """The command has its ends: ours are closed, so that the end of the output is seen, and reading begins."""
        for fd in {self.stdout, self.stderr}:
            os.close(fd)
        for source, target, stream in self._streams:
            thread = threading.Thread(target=self._pump, args=(source, target, stream), name=f"tee-{stream}", daemon=True)
            thread.start()
            self._threads.append(thread)
        atexit.register(self._finish)

    def join(self, seconds: float) -> None:
        """Waits for the end of the output, at most so long a stream; then for its shipping."""
        for thread in self._threads:
            thread.join(seconds)
        self._shipper.drain(seconds)
        if not any(thread.is_alive() for thread in self._threads):
            atexit.unregister(self._finish)

    def _finish(self) -> None:
        """At the end of this process: what a slow reader has not taken yet is waited for. Not for an end that somebody else keeps open."""
        with contextlib.suppress(KeyboardInterrupt):
            while any(thread.is_alive() and self._owes(source) for thread, (source, *_) in zip(self._threads, self._streams, strict=True)):
                time.sleep(_LOOK)

    def _owes(self, source: int) -> bool:
        return _unread(source) or source in self._passing  # in this order, as the pump notes it before it reads

    def _pump(self, source: int, target: int, stream: str) -> None:
        open_target, ready = True, select.poll()
        ready.register(source, select.POLLIN)
        while ready.poll():
            self._passing.add(source)
            if not (data := os.read(source, _BLOCK)):
                break
            if open_target:
                open_target = _write_all(target, data)
            self._passing.discard(source)
            self._shipper.put(stream, data)
        os.close(source)
        self._shipper.put(stream, b"")


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with contextlib.suppress(OSError):  # over the user's limit: the usual 64 KiB will do
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE)
    return read, write


def _unread(pipe: int) -> bool:
    """Whether something waits in it."""
    with contextlib.suppress(OSError):  # it was just closed
        return bool(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])
    return False


def _write_all(fd: int, data: bytes) -> bool:
    """Writes all of `data`, waiting where the other side is slow. False once nobody reads: the command goes on without."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
        except OSError:
            return False
    return True


def _same_file(one: int, other: int) -> bool:
    with contextlib.suppress(OSError):
        a, b = os.fstat(one), os.fstat(other)
        return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
    return False
