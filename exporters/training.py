"""The trainers' rings of this node: finds them, follows them, turns what they hold into records."""

import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final

from exporters.collector import RankProcess
from exporters.labels import clean
from exporters.sources import process, ring_records
from exporters.sources.process import Process
from exporters.sources.ring import Batch, RingReader
from pipeline.catalog.events import RING_INVALID, RING_OVERRUN
from pipeline.errors import InputError
from pipeline.records import Event, Live, Record
from surefoot.hook.layout import RING_SUFFIX, LiveCell

MAX_RINGS: Final = 512  # followed at once; the folder is open to all users of the node
_MAX_FILES: Final = 4096  # of the folder that are looked at
KEEP_DEAD: Final = 600.0  # seconds that the ring of a dead process is kept
REFUSE_AFTER: Final = 2.0  # seconds that a ring may be unfinished before it is called invalid
RETRY: Final = 5.0  # seconds between looks at a refused ring
LIVE_EVERY: Final = 1.0  # seconds; the longest silence about a rank that does not change
OVERRUN_EVERY: Final = 10.0  # seconds between two overrun events of one rank
_MAX_COUNT: Final = (1 << 32) - 1
_NOTHING: Final = LiveCell(None, None, 0, "", "")
_log = logging.getLogger(__name__)

Named = tuple[str, Record]


@dataclass(slots=True)
class _Followed:
    """A ring being read. Times are monotonic seconds; `started` is the process's, in ticks since boot."""

    reader: RingReader
    path: Path
    cell: LiveCell = _NOTHING
    started: int | None = None
    sent: tuple[LiveCell, str] | None = None
    sent_at: float = 0.0
    lost: int = 0
    lost_unsaid: int = 0
    said_at: float | None = None
    gone_since: float | None = None
    closed: bool = False
    complained: bool = False

    @property
    def key(self) -> str:
        """Names this very file, also over a restart of the agent."""
        return f"{self.path.name}:{self.reader.inode}:{self.reader.header.created}"


@dataclass(slots=True)
class _Refused:
    since: float
    next_try: float
    said: bool = False


class RingPoller:
    """Follows every ring in `folder`. `node` stands where a ring names none; `proc` is /proc; `ticks` a second is USER_HZ;
    `cursors` (from `cursors()` of an earlier agent) say how far rings have been read already."""

    def __init__(self, folder: Path, node: str, proc: Path, ticks: float, cursors: Mapping[str, int] | None = None) -> None:
        self._folder = folder
        self._node = node
        self._proc = proc
        self._ticks = ticks
        self._cursors = dict(cursors or {})
        self._followed: dict[int, _Followed] = {}
        self._refused: dict[int, _Refused] = {}
        self._ranks: tuple[RankProcess, ...] = ()

    def poll(self, now: datetime, clock: float) -> list[Named]:
        """What is new since the last call, as (event name, record). `clock` is monotonic seconds.

        Raises nothing for what the files hold.
        """
        found = self._list()
        records: list[Named] = []
        for inode in sorted(found.keys() - self._followed.keys(), key=self._refused.__contains__):
            if len(self._followed) < MAX_RINGS:
                records += self._open(inode, found[inode], now, clock)
        for inode, ring in list(self._followed.items()):
            records += self._follow(inode, ring, now, clock)
            if inode not in found:
                self._forget(inode)
        for inode in self._refused.keys() - found.keys():
            del self._refused[inode]
        living = [(ring.reader.header, ring.started) for ring in self._followed.values() if ring.gone_since is None]
        self._ranks = tuple(RankProcess(header.run, header.rank, header.pid, started) for header, started in living)
        return records

    def ranks(self) -> tuple[RankProcess, ...]:
        """The ranks that were there at the last `poll`. For any thread."""
        return self._ranks

    def cursors(self) -> dict[str, int]:
        """How far each ring that is still there has been read."""
        return {ring.key: ring.reader.cursor for ring in self._followed.values()}

    def close(self) -> None:
        """Closes all files."""
        for inode in list(self._followed):
            self._forget(inode)

    # --- finding ----------------------------------------------------------------------------

    def _list(self) -> dict[int, Path]:
        """The ring files that are there, by inode: a new file under an old name is another ring."""
        try:
            with os.scandir(self._folder) as entries:
                named = (entry for entry in entries if entry.name.endswith(RING_SUFFIX))
                return {entry.inode(): self._folder / entry.name for entry in islice(named, _MAX_FILES)}
        except OSError:
            return {}

    def _open(self, inode: int, path: Path, now: datetime, clock: float) -> Iterator[Named]:
        refused = self._refused.get(inode)
        if refused and clock < refused.next_try:
            return
        try:
            reader = RingReader.open(path, self._owner_ok)
        except (InputError, OSError) as e:
            yield from self._refuse(inode, path, e, now, clock)
            return
        self._refused.pop(inode, None)
        reader.header = replace(reader.header, node=reader.header.node.lower() or self._node)
        ring = self._followed[reader.inode] = _Followed(reader, path)
        reader.cursor = self._cursors.pop(ring.key, 0)

    def _refuse(self, inode: int, path: Path, why: Exception, now: datetime, clock: float) -> Iterator[Named]:
        """Looks again later: a ring that is just being made is unfinished for a moment."""
        refused = self._refused.setdefault(inode, _Refused(clock, clock))
        young = clock - refused.since < REFUSE_AFTER
        refused.next_try = clock if young else clock + RETRY
        if not young and not refused.said and not isinstance(why, FileNotFoundError):
            refused.said = True
            yield "surefoot.event", self._invalid(path, inode, str(why), now)

    def _owner_ok(self, uid: int, pid: int) -> bool:
        """A living process's ring belongs to a user that it runs under; a dead one's is read where its owner could do no harm by it."""
        users = process.owners(self._proc, pid)
        return uid in users if users else os.geteuid() in (0, uid) or uid == 0

    def _invalid(self, path: Path, inode: int, why: str, now: datetime) -> Event:
        _log.warning("ring %s is not used: %s", clean(str(path)), clean(why))
        return Event(
            id=blake2b(f"{self._node}\x1f{path}\x1f{inode}\x1f{why}".encode(errors="replace"), digest_size=16).hexdigest(),
            at=now,
            kind=RING_INVALID.name,
            layer=RING_INVALID.layer.value,
            severity=RING_INVALID.severity.value,
            node=self._node,
            message=clean(why),
            attrs={"path": clean(str(path))},
        )

    # --- reading ----------------------------------------------------------------------------

    def _follow(self, inode: int, ring: _Followed, now: datetime, clock: float) -> Iterator[Named]:
        if ring.gone_since is not None:
            self._clean_up(ring, clock - ring.gone_since)
            return
        try:
            found = process.read(self._proc, ring.reader.header.pid, self._ticks)
        except OSError:
            return  # not known whether the process lives: say nothing, which is seen as silence
        alive = self._same(ring, found)
        try:
            batch = ring.reader.read()
        except (InputError, OSError) as e:
            self._forget(inode)
            self._refused[inode] = _Refused(clock, math.inf, said=True)
            yield "surefoot.event", self._invalid(ring.path, inode, str(e), now)
            return
        yield from self._records(ring, batch, now)
        yield from self._overrun(ring, batch.lost, now, clock)
        ring.cell = batch.live or ring.cell
        yield from self._live(ring, found if alive else None, batch.closed, now, clock)
        if not alive and batch.complete and ring.gone_since is None:
            ring.gone_since = clock

    def _clean_up(self, ring: _Followed, dead_for: float) -> None:
        if dead_for > KEEP_DEAD:
            with suppress(OSError):
                ring.path.unlink()

    def _same(self, ring: _Followed, found: Process | None) -> bool:
        """Is `found` the process that made the ring, not a later one with its pid?"""
        if found is not None and ring.started is None:
            ring.started = found.started
        return found is not None and found.started == ring.started

    def _records(self, ring: _Followed, batch: Batch, now: datetime) -> Iterator[Named]:
        for sequence, slot in batch.slots:
            try:
                record = ring_records.decode(ring.reader.header, sequence, slot)
            except InputError as e:
                ring.lost += 1
                if not ring.complained:
                    ring.complained = True
                    yield "surefoot.event", self._invalid(ring.path, ring.reader.inode, str(e), now)
                continue
            yield "surefoot.event" if isinstance(record, Event) else "surefoot.step", record

    def _overrun(self, ring: _Followed, lost: int, now: datetime, clock: float) -> Iterator[Named]:
        ring.lost += lost
        ring.lost_unsaid += lost
        if ring.lost_unsaid and (ring.said_at is None or clock - ring.said_at >= OVERRUN_EVERY):
            count, ring.lost_unsaid, ring.said_at = min(ring.lost_unsaid, _MAX_COUNT), 0, clock
            yield "surefoot.event", ring_records.event(ring.reader.header, RING_OVERRUN, str(ring.reader.cursor), now, count=count)

    def _live(self, ring: _Followed, found: Process | None, closed: bool, now: datetime, clock: float) -> Iterator[Named]:
        """One at a change and at least one a second. A monitor closed in good order gets one last, then silence: what the
        process still does is no training, and must not look like a hang."""
        state = found.state if found else process.GONE
        changed = (ring.cell, state) != ring.sent
        due = found is not None and clock - ring.sent_at >= LIVE_EVERY
        last = closed and ring.sent is not None
        if not ring.closed and (last if closed else changed or due):
            ring.sent, ring.sent_at = (ring.cell, state), clock
            with suppress(InputError):  # a cell whose time cannot be says nothing
                yield "surefoot.live", self._live_record(ring, found, now)
        ring.closed = closed

    def _live_record(self, ring: _Followed, found: Process | None, now: datetime) -> Live:
        return ring_records.live(ring.reader.header, ring.cell, found, now, ring.lost)

    def _forget(self, inode: int) -> None:
        ring = self._followed.pop(inode, None)
        if ring:
            ring.reader.close()
