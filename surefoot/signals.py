"""Signals that end a command: noted when they come, heeded where nothing is half done.

An exception out of a signal handler lands between any two instructions, also between starting a process and
remembering it. Here a handler only notes; a second signal changes nothing.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A signal asked for the end. The exit code to end with is `code`."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.code = 128 + number


class Signals:
    """While entered, notes the ending signals; those that were ignored (nohup) stay so. For the main thread.

    `stopping` is called once, before the first `pause` that raises.
    """

    def __init__(self, stopping: Callable[[], object] = lambda: None) -> None:
        self.number = 0
        self._stopping = stopping

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        # The signal may reach another thread, and the main thread would sleep on: its select wakes by what the kernel's handler writes.
        self._woken_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._before = {n: signal.signal(n, self._note) for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._reader)
        os.close(self._writer)

    def _note(self, number: int, _: object) -> None:
        self.number = self.number or number

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long, for a signal; whether one has come by now."""
        deadline = time.monotonic() + seconds
        while not self.number and (left := deadline - time.monotonic()) > 0:
            if select.select([self._reader], (), (), left)[0]:
                os.read(self._reader, 512)
        return bool(self.number)

    def pause(self, seconds: float) -> None:
        """Sleep so long. Raises Interrupted once a signal has come: call it only where nothing is half done."""
        if self.wait(seconds):
            self._stopping()
            raise Interrupted(self.number)
