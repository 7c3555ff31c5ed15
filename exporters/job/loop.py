"""The launcher's one loop step: waits for whatever comes first, and hands it on."""

import contextlib
import os
import selectors
import signal
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from exporters.job.attempt import Attempt
from exporters.job.control import Issued, Request
from exporters.job.inbox import Inbox
from exporters.job.lines import Closing, Report
from exporters.job.ranks import Rank

FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

Item = Request | Issued | Report | Closing | signal.Signals


@dataclass(slots=True)
class Loop:
    """What the main thread waits for. `turn` handles exits, signals and torchrun's words itself; requests wait in `requests`."""

    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    inbox: Inbox[Item] = field(default_factory=Inbox)
    attempt: Attempt | None = None
    requests: deque[Request] = field(default_factory=deque)
    issued: Issued | None = None
    asked_to_end: signal.Signals | None = None  # a person or a scheduler wants the run to end
    asked_to_kill: bool = False  # a person interrupted it twice

    def __post_init__(self) -> None:
        self.selector.register(self.inbox, selectors.EVENT_READ, None)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """While inside, signals for the command come to the loop. Those that were ignored (nohup) stay so."""
        before = {n: signal.getsignal(n) for n in FORWARDED}
        mine = [n for n in FORWARDED if before[n] is not signal.SIG_IGN]
        for number in mine:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number in mine:
                signal.signal(number, before[number])

    def turn(self, seconds: float) -> None:
        """Waits at most so long, for less where the attempt wants to be looked at, and handles what came."""
        if self.attempt:
            seconds = min(seconds, self.attempt.patience())
        woken = [key.data for key, _ in self.selector.select(max(0.0, seconds)) if isinstance(key.data, Rank)]
        if self.attempt:
            self.attempt.look(woken)
        for item in self.inbox.take():
            self._handle(item)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.inbox.put(signal.Signals(number))

    def _handle(self, item: Item) -> None:
        match item:
            case Request():
                self.requests.append(item)
            case Issued():
                self.issued = item
            case signal.Signals():
                self._pass_on(item)
            case _ if self.attempt:
                self.attempt.told(item)

    def _pass_on(self, number: signal.Signals) -> None:
        if number in ENDING:
            self.asked_to_kill = number == signal.SIGINT and self.asked_to_end is not None
            self.asked_to_end = number
        if not self.attempt:
            return
        if number in ENDING:
            self.attempt.announce_stop(f"{number.name} to the launcher")
            self.attempt.ranks.are_stopped()  # what they do from now on is our doing
        if number != signal.SIGINT or not os.isatty(0):  # at a terminal the command got the interrupt as we did
            self.attempt.forward(number)
