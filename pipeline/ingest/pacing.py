"""When the writer does what. Pure: takes the time, gives the work that is due or how long to wait."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pipeline.otlp.decoded import Haste

HURRY_GAP: Final = 0.05  # seconds between two inserts of events: an insert costs about 15 ms however small
SOON_GAP: Final = 0.25  # seconds between two inserts of what ranks are doing
SEGMENT_BYTES: Final = 8 << 20  # what is decoded at once


class Work(Enum):
    """What the writer's thread does next."""

    WAIT = "wait"
    HURRY = "hurry"  # store what must not wait
    ROLL = "roll"  # close the open segment
    STORE = "store"  # store a batch of the oldest closed segment
    END = "end"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long (seconds) and how much (rows) a batch may gather."""

    batch_seconds: float
    batch_rows: int


@dataclass(slots=True)
class Waiting:
    """What was added to the open segment. Times are monotonic seconds; None where nothing of the kind waits."""

    since: float | None = None
    rows: int = 0
    size: int = 0
    now: bool = False
    soon: bool = False
    hurried_at: float = 0.0

    def add(self, haste: Haste, rows: int, size: int, now: float) -> None:
        """An entry was added."""
        self.since = now if self.since is None else self.since
        self.rows += rows
        self.size += size
        self.now |= haste is Haste.NOW
        self.soon |= haste is Haste.SOON

    def begin(self, work: Work, now: float) -> None:
        """`work` begins: what is added from here on is of the next one."""
        if work is Work.HURRY:
            self.now = self.soon = False
            self.hurried_at = now
        elif work is Work.ROLL:
            self.since, self.rows, self.size, self.now, self.soon = None, 0, 0, False, False


def due(waiting: Waiting, pace: Pace, now: float, retry_at: float, busy: bool, chunks: bool) -> tuple[Work, float | None]:
    """The work that is due and 0, or WAIT and for how long (None: until something is added).

    `retry_at`: before it the store is not asked. `busy`: a closed segment waits. `chunks`: hurried rows failed.
    """
    if waiting.rows >= pace.batch_rows or waiting.size >= SEGMENT_BYTES:
        return Work.ROLL, 0.0
    if now < retry_at:
        return Work.WAIT, retry_at - now
    times: list[tuple[float, Work]] = []
    if waiting.now or chunks:
        times.append((waiting.hurried_at + HURRY_GAP, Work.HURRY))
    elif waiting.soon:
        times.append((waiting.hurried_at + SOON_GAP, Work.HURRY))
    if busy:
        times.append((now, Work.STORE))
    elif waiting.since is not None:
        times.append((waiting.since + pace.batch_seconds, Work.ROLL))
    if not times:
        return Work.WAIT, None
    ready = [work for at, work in times if at <= now]
    return (ready[0], 0.0) if ready else (Work.WAIT, min(at for at, _ in times) - now)
