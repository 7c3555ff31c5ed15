"""What the kernel's log tells of: GPU errors, kills, hangs, hardware, disks, file systems, links, crashes."""

import errno
import math
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from exporters.collector import Site
from exporters.kernel.events import Teller
from exporters.kernel.floods import Floods
from exporters.kernel.ranks import RankBook
from exporters.kernel.times import RECEIVE, moment
from exporters.labels import told
from exporters.sources import procfs
from exporters.sources.gpu.nvml_events import XidEvents
from exporters.sources.kernel.journal import Journal
from exporters.sources.kernel.kmsg import Kmsg, Read
from exporters.sources.kernel.log import KERNEL, USER, KernelRecord, joined
from pipeline.catalog.events import KERNEL_LOG_LOST
from pipeline.records import Event

EVERY: Final = 0.5  # seconds between two looks: what ends a run is to be known within two
AGAIN: Final = 30.0  # seconds after which a log is opened again that could not be read any more
KMSG: Final = Path("/dev/kmsg")
_BOOT: Final = "kernel.boot"
_FROM_START: Final = -1
_KEPT_FROM_US: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV})


class Log(Protocol):
    """A kernel's log. `after` is the number of the last record that was read, kept as `cursor`; `saved`: it is a file somebody saved."""

    after: int

    @property
    def saved(self) -> bool: ...

    @property
    def cursor(self) -> str: ...

    @property
    def source(self) -> str:
        """What it is, in words."""
        ...

    def read(self) -> Read:
        """What has been logged since."""
        ...

    def close(self) -> None:
        """Gives it back."""
        ...


After = Callable[[str], int | None]
OpenLog = Callable[[Path, After], Log]


def open_log(path: Path, after: After) -> Log:
    """The log at `path`; where that may not be read, or this machine's own is not there (containers), systemd's.

    `after` says of a cursor how far it had come. Raises OSError where neither can be read, FileNotFoundError where there is neither.
    """
    try:
        return Kmsg(path, after(Kmsg.cursor))
    except OSError as e:
        if e.errno not in _KEPT_FROM_US and not (e.errno == errno.ENOENT and path == KMSG):
            raise
        try:
            return Journal(path, after(Journal.cursor))
        except OSError as other:
            raise OSError(e.errno, f"{e.strerror}, and nothing from systemd's journal: {other.strerror or other}", str(path)) from other


def kernel_clock() -> float:
    """Seconds on the clock that the kernel's log is written by, as far as a program can see it."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class KernelCollector:
    """Reads the log on from where the agent before it had come to; after a reboot from its beginning, at first only what is new.

    A line's event is told once. Where there is no log it tells nothing; one that may not be read raises OSError, and so does a saved file
    that is none. Of a saved one all is told in the first pass, by the times that stand in it. Where this machine's own log cannot be read,
    NVIDIA's driver is asked for XIDs.
    """

    def __init__(
        self, site: Site, clock: Callable[[], float] = kernel_clock, opener: OpenLog = open_log, xids: XidEvents | None = None
    ) -> None:
        self._site, self._clock, self._opener = site, clock, opener
        self._boot_id = procfs.boot_id(site.proc)
        self._boot = int(blake2b(self._boot_id.encode(errors="replace"), digest_size=7).hexdigest(), 16)
        self._log: Log | None = None
        self._reached: dict[str, int] = {}  # by cursor, the last record that was read
        self._open_at = float("-inf")
        self._failed: OSError | None = None  # why it could not be opened, or read on
        self._known = False  # whether any record was read of it
        self._caught_up: datetime | None = None
        self._ranks = RankBook(site.ranks, site.proc)
        self._teller = Teller(site, self._boot_id, self._ranks)
        self._floods = Floods()
        self._floods_told = Floods()  # of what the driver tells: its numbers are no records of the log
        self._xids = xids or XidEvents()

    def absent(self) -> str:
        """No kernel log."""
        return "" if self._log is not None else f"no kernel log: {told(self._failed)}" if self._failed else "no kernel log"

    def source(self) -> str:
        """Which log is read."""
        return self._log.source if self._log is not None else ""

    def collect(self, now: datetime) -> Iterator[Event]:
        """What was logged since the last call."""
        clock = self._clock()
        try:
            log = self._opened(now, clock)
        except OSError:
            yield from self._from_driver(now, clock)
            raise
        self._ranks.look(clock)
        if log is None:
            yield from self._from_driver(now, clock)
            return
        self._xids.close()
        yield from self._floods_told.due(clock)
        if log.saved:
            yield from self._whole(log, now, clock)
            return
        read = self._read(log, clock)
        if read.lost:
            yield self._lost(now, read)
        yield from self._told(log, read, now, clock, now.timestamp() - clock)
        yield from self._floods.due(clock)
        self._caught_up = now if read.all else None

    def _from_driver(self, now: datetime, clock: float) -> Iterator[Event]:
        """XIDs in the words of the kernel's log, which would have had them."""
        for n, one in enumerate(self._xids.take() if self._site.kmsg == KMSG else ()):
            number = round(now.timestamp() * 1e6) + n  # no two records of two agents have the same
            record = KernelRecord(f"NVRM: Xid (PCI:{one.pci}): {one.xid}, told by the driver", number)
            if (event := self._teller.event(record, now, RECEIVE)) and (whole := self._floods_told.take(event, number, clock)):
                yield whole
        yield from self._floods_told.due(clock)

    def _whole(self, log: Log, now: datetime, clock: float) -> Iterator[Event]:
        """What a saved file tells from where it was read last, to its end; nothing is held back there, as nothing more may come."""
        boot = procfs.passed(procfs.cpu(self._site.proc, self._site.ticks).boot, now.timestamp())
        malformed, ended = 0, False
        while not ended:
            read = self._read(log, clock)
            self._known, ended = self._known or bool(read.records), read.all
            malformed += read.malformed
            yield from self._told(log, read, now, clock, boot)
        yield from self._floods.due(math.inf)
        if malformed and not self._known:
            raise OSError(f"{self._site.kmsg} is no kernel log: none of its {malformed} lines has the form of /dev/kmsg, dmesg or syslog")

    def _told(self, log: Log, read: Read, now: datetime, clock: float, boot: float | None) -> Iterator[Event]:
        """The events of the records. In a saved log a flood is what came within a time by the log's own clock."""
        for record in joined(list(read.records)):
            self._reached[log.cursor] = record.sequence
            if record.facility not in (KERNEL, USER):
                continue
            event = self._teller.event(record, *moment(record, now, self._caught_up, boot))
            if event is None:
                continue
            if log.saved and record.clock is not None:
                clock = record.clock
                yield from self._floods.due(clock)
            if (one := self._floods.take(event, record.sequence, clock)) is not None:
                yield one

    def kept(self) -> Mapping[str, int]:
        """This boot, and the number of the first record that the next agent has to read."""
        if self._log is None or self._log.saved:
            return {}
        held = self._floods.oldest
        return {_BOOT: self._boot, self._log.cursor: self._reached.get(self._log.cursor, _FROM_START) + 1 if held is None else held}

    def close(self) -> None:
        """Gives the log back."""
        self._xids.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self, now: datetime, clock: float) -> Log | None:
        """The log; None where there is none. One that cannot be had is not tried again at once, and fails until then."""
        if self._log is None and clock < self._open_at:
            if self._failed is None or isinstance(self._failed, FileNotFoundError):
                return None
            raise self._failed
        if self._log is None:
            try:
                self._log = self._opener(self._site.kmsg, self._after)
            except OSError as e:
                self._failed, self._open_at = e, clock + AGAIN
                return self._opened(now, clock)
            self._failed = None
            begins_here = self._after(self._log.cursor) is None and not self._log.saved
            self._caught_up = now if begins_here else None
            self._reached[self._log.cursor] = self._log.after
        return self._log

    def _after(self, cursor: str) -> int | None:
        """The last record that is known; None where only new ones are to be told: on a node, or in a log, that was never looked at."""
        if cursor in self._reached:
            return self._reached[cursor]
        kept = self._site.kept
        if _BOOT not in kept or not self._boot_id:  # which boot it was cannot be told
            return None
        if kept[_BOOT] != self._boot:
            return _FROM_START
        return kept[cursor] - 1 if cursor in kept else None

    def _read(self, log: Log, clock: float) -> Read:
        try:
            return log.read()
        except OSError as e:
            self.close()
            self._failed, self._open_at = e, clock + AGAIN
            raise

    def _lost(self, now: datetime, read: Read) -> Event:
        what = f"{self._site.node}\x1f{self._boot_id}\x1flost\x1f{read.records[0].sequence if read.records else now.isoformat()}"
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
