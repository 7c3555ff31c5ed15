"""What the kernel's log tells of: GPU errors, kills, hangs, hardware, disks, file systems, links, crashes."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from exporters.collector import Site
from exporters.kernel_events import Teller
from exporters.kernel_floods import Floods
from exporters.kernel_ranks import RankBook
from exporters.kernel_times import moment
from exporters.sources import procfs
from exporters.sources.kernel_log import KERNEL, USER, joined
from exporters.sources.kmsg import Kmsg, Read
from pipeline.catalog.events import KERNEL_LOG_LOST
from pipeline.records import Event

EVERY: Final = 0.5  # seconds between two looks: what ends a run is to be known within two
_BOOT, _SEQUENCE = "kernel.boot", "kernel.sequence"
_FROM_START: Final = -1


class Log(Protocol):
    """A kernel's log: `after` is the number of the last record that was read; `saved`: it is a file that somebody saved."""

    saved: bool
    after: int

    def read(self) -> Read:
        """What has been logged since."""
        ...

    def close(self) -> None:
        """Gives it back."""
        ...


OpenLog = Callable[[Path, int | None], Log]


def kernel_clock() -> float:
    """Seconds on the clock that the kernel's log is written by, as far as a program can see it."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class KernelCollector:
    """Reads the log on from where the agent before it had come to; after a reboot from its beginning, at first only what is new.

    A line's event is told once. Where there is no log it tells nothing; one that may not be read raises OSError.
    """

    def __init__(self, site: Site, clock: Callable[[], float] = kernel_clock, open_log: OpenLog = Kmsg) -> None:
        self._site, self._clock, self._open = site, clock, open_log
        self._boot_id = procfs.boot_id(site.proc)
        self._boot = int(blake2b(self._boot_id.encode(), digest_size=7).hexdigest(), 16)
        self._sequence = self._start()
        self._log: Log | None = None
        self._caught_up: datetime | None = None
        self._ranks = RankBook(site.ranks, site.proc)
        self._teller = Teller(site, self._boot_id, self._ranks)
        self._floods = Floods()

    def _start(self) -> int | None:
        """The last record that is known; None on a node that was never looked at."""
        if _BOOT not in self._site.kept:
            return None
        return self._site.kept.get(_SEQUENCE, _FROM_START + 1) - 1 if self._site.kept[_BOOT] == self._boot else _FROM_START

    def collect(self, now: datetime) -> Iterator[Event]:
        """What was logged since the last call."""
        if self._log is None:
            if not self._site.kmsg.exists():
                return
            log = self._log = self._open(self._site.kmsg, self._sequence)
            self._caught_up = now if self._sequence is None and not log.saved else None
            self._sequence = log.after
        clock = self._clock()
        self._ranks.look(clock)
        read = self._log.read()
        boot = procfs.cpu(self._site.proc, self._site.ticks).boot if self._log.saved else now.timestamp() - clock
        if read.lost:
            yield self._lost(now, read)
        for record in joined(list(read.records)):
            self._sequence = record.sequence
            if record.facility not in (KERNEL, USER):
                continue
            event = self._teller.event(record, *moment(record, now, self._caught_up, boot))
            if event is not None and (told := self._floods.take(event, record.sequence, clock)) is not None:
                yield told
        yield from self._floods.due(clock)
        self._caught_up = now if read.all and not self._log.saved else None

    def kept(self) -> Mapping[str, int]:
        """This boot, and the number of the first record that the next agent has to read."""
        if self._log is None or self._log.saved:
            return {}
        next_one = self._floods.oldest
        if next_one is None:
            next_one = (_FROM_START if self._sequence is None else self._sequence) + 1
        return {_BOOT: self._boot, _SEQUENCE: next_one}

    def close(self) -> None:
        """Gives the log back."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _lost(self, now: datetime, read: Read) -> Event:
        what = f"{self._site.node}\x1f{self._boot_id}\x1flost\x1f{read.records[0].sequence if read.records else self._sequence}"
        return Event(
            id=blake2b(what.encode(errors="replace"), digest_size=16).hexdigest(),
            at=now,
            kind=KERNEL_LOG_LOST.name,
            layer=KERNEL_LOG_LOST.layer.value,
            severity=KERNEL_LOG_LOST.severity.value,
            node=self._site.node,
            message=f"{read.lost} lines of the kernel's log were overwritten before they were read",
            count=read.lost,
        )
