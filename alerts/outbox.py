"""The outbox: what is to be told to whom, on disk before anybody is told (sqlite, WAL, fsync at every commit).

A notification is sent at least once, always under the same dedup key. Of one receiver and dedup key
only the oldest is in flight, so a resolve never overtakes its trigger. Neighbours of the same event
that wait together are sent as one, the newest. States: queued, sent, failed.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Condition, RLock

from alerts.delivery_rules import RATE_WINDOW, is_due, orphaned, rate_wait
from alerts.outbox_rows import HEADS, SCHEMA, Queued, Result, queued_of, result_of
from alerts.receivers.page import Page
from pipeline.catalog.layers import gravity
from pipeline.clock import from_micros, to_micros
from pipeline.errors import SurefootError

__all__ = ["Outbox", "OutboxError", "Queued", "Result"]

KEEP_DAYS = 30


class OutboxError(SurefootError):
    """The outbox's file could not be read or written; the same call may succeed later."""

    permanent = False


class Outbox:
    """The file and its one connection; may be used from any thread. All times are aware. Methods raise OutboxError."""

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        self._news = Condition()
        self._count = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5.0)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as e:
            raise OutboxError(f"cannot open the outbox {path}: {e}") from e

    # --- in -----------------------------------------------------------------------------

    def enqueue(self, notification: str, *, receiver: str, incident: str, page: Page, now: datetime) -> bool:
        """Keep a page for `receiver` and wake delivery. False where `notification` is known already: nothing changes."""
        at = to_micros(now)
        row = (notification, receiver, incident, page.event, page.dedup_key, page.to_json(), gravity(page.severity), at, at)
        with self._transaction() as db:
            added = db.execute(
                "INSERT INTO outbox (notification, receiver, incident, event, dedup_key, page, priority, queued_at, next_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (notification) DO NOTHING",
                row,
            ).rowcount
            db.execute("DELETE FROM outbox WHERE reported = 1 AND settled_at < ?", (to_micros(now - timedelta(days=KEEP_DAYS)),))
        self.wake()
        return bool(added)

    # --- out ----------------------------------------------------------------------------

    def due(self, receiver: str, now: datetime) -> list[Queued]:
        """What may be sent to `receiver` now, worst severity first, then oldest; at most one a dedup key."""
        with self._transaction() as db:
            self._merge(db, receiver)
            while self._drop_orphans(db, receiver, now):
                pass
            heads = [queued_of(row) for row in db.execute(HEADS, (receiver,))]
        return [head for head in heads if is_due(head.next_at, now)]

    def next_at(self, receiver: str) -> datetime | None:
        """When the next thing for `receiver` is due; None where nothing waits."""
        with self._transaction() as db:
            times = [queued_of(row).next_at for row in db.execute(HEADS, (receiver,))]
        return min(times, default=None)

    def begin(self, queued: Queued, bucket: str, now: datetime, next_at: datetime) -> float:
        """Count a try against `bucket`'s rate, on disk before it is made. Gives 0.0, or the seconds to wait instead.

        `next_at` is when it is tried again if this process dies before it learns the outcome.
        """
        with self._transaction() as db:
            if wait := self._wait(db, bucket, now):
                return wait
            db.execute("INSERT INTO sends VALUES (?, ?)", (bucket, to_micros(now)))
            db.execute("UPDATE outbox SET tries = tries + 1, next_at = ? WHERE seq = ?", (to_micros(next_at), queued.seq))
        return 0.0

    def mark_sent(self, queued: Queued, now: datetime, reason: str) -> None:
        """The receiver took it."""
        self._settle(queued, "sent", now, reason)

    def mark_failed(self, queued: Queued, now: datetime, reason: str) -> None:
        """The receiver will never take it."""
        self._settle(queued, "failed", now, reason)

    def mark_retry(self, queued: Queued, next_at: datetime, reason: str) -> None:
        """It stays queued, and is due at `next_at`."""
        with self._transaction() as db:
            db.execute("UPDATE outbox SET next_at = ?, reason = ? WHERE seq = ?", (to_micros(next_at), reason, queued.seq))

    def pause(self, bucket: str, until: datetime) -> None:
        """The receiver asked to be left alone: nothing of `bucket` is begun before `until`."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO pauses VALUES (?, ?) ON CONFLICT (bucket) DO UPDATE SET until = excluded.until", (bucket, to_micros(until))
            )

    # --- told back ----------------------------------------------------------------------

    def unreported(self, receiver: str) -> list[Result]:
        """Outcomes that `reported` was not called for, oldest first."""
        with self._transaction() as db:
            return [
                result_of(r)
                for r in db.execute(
                    "SELECT * FROM outbox WHERE receiver = ? AND state != 'queued' AND reported = 0 ORDER BY seq", (receiver,)
                )
            ]

    def reported(self, notification: str) -> None:
        """Its outcome has been written where people look."""
        with self._transaction() as db:
            db.execute("UPDATE outbox SET reported = 1 WHERE notification = ?", (notification,))

    def states(self) -> dict[str, str]:
        """The state of every notification kept, by its id."""
        with self._transaction() as db:
            return {row["notification"]: row["state"] for row in db.execute("SELECT notification, state FROM outbox ORDER BY seq")}

    # --- waking -------------------------------------------------------------------------

    def news(self) -> int:
        """A number that grows at every `wake`."""
        return self._count

    def wake(self) -> None:
        """Let everybody look again at once."""
        with self._news:
            self._count += 1
            self._news.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Return when `news` is no longer `seen`, or after `seconds`."""
        with self._news:
            self._news.wait_for(lambda: self._count != seen, timeout=seconds)

    def close(self) -> None:
        """Close the file; what is in it stays."""
        with self._lock:
            self._db.close()

    # --- inside -------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as e:
                raise OutboxError(f"the outbox cannot be used: {e}") from e

    def _merge(self, db: sqlite3.Connection, receiver: str) -> None:
        """Neighbours of one key and event become one: the newest carries the others, and inherits their patience."""
        rows = db.execute(
            "SELECT * FROM outbox WHERE receiver = ? AND state = 'queued' AND carried_by IS NULL ORDER BY dedup_key, seq", (receiver,)
        ).fetchall()
        for old, new in pairwise(rows):
            if (old["dedup_key"], old["event"]) != (new["dedup_key"], new["event"]):
                continue
            inherited = db.execute(
                "SELECT tries, next_at FROM outbox WHERE seq = ?", (old["seq"],)
            ).fetchone()  # as changed by the pair before
            if inherited["tries"]:
                db.execute("UPDATE outbox SET tries = ?, next_at = ? WHERE seq = ?", (inherited["tries"], inherited["next_at"], new["seq"]))
            db.execute("UPDATE outbox SET carried_by = ? WHERE seq = ? OR carried_by = ?", (new["seq"], old["seq"], old["seq"]))

    def _drop_orphans(self, db: sqlite3.Connection, receiver: str, now: datetime) -> int:
        dropped = 0
        for row in db.execute(HEADS, (receiver,)).fetchall():
            if reason := orphaned(row["event"], _triggers(db, row)):
                self._settle_row(db, row["seq"], "failed", now, reason)
                dropped += 1
        return dropped

    def _wait(self, db: sqlite3.Connection, bucket: str, now: datetime) -> float:
        db.execute("DELETE FROM sends WHERE at <= ? OR at > ?", (to_micros(now - timedelta(seconds=RATE_WINDOW)), to_micros(now)))
        sent = [from_micros(row["at"]) for row in db.execute("SELECT at FROM sends WHERE bucket = ? ORDER BY at", (bucket,))]
        paused = db.execute("SELECT until FROM pauses WHERE bucket = ?", (bucket,)).fetchone()
        rest = 0.0
        if paused and not is_due(from_micros(paused["until"]), now):
            rest = (from_micros(paused["until"]) - now).total_seconds()
        return max(rest, rate_wait(sent, now))

    def _settle(self, queued: Queued, state: str, now: datetime, reason: str) -> None:
        with self._transaction() as db:
            self._settle_row(db, queued.seq, state, now, reason)

    def _settle_row(self, db: sqlite3.Connection, seq: int, state: str, now: datetime, reason: str) -> None:
        values = {"state": state, "at": to_micros(now), "reason": reason, "seq": seq}
        db.execute(
            "UPDATE outbox SET state = :state, settled_at = :at, reason = :reason, tries = (SELECT tries FROM outbox WHERE seq = :seq) "
            "WHERE state = 'queued' AND (seq = :seq OR carried_by = :seq)",
            values,
        )


def _triggers(db: sqlite3.Connection, row: sqlite3.Row) -> list[str]:
    """States of the triggers of the row's key since its last resolve."""
    found = db.execute(
        "SELECT state FROM outbox WHERE receiver = :receiver AND dedup_key = :key AND event = 'trigger' AND seq < :seq AND seq > coalesce("
        "(SELECT max(seq) FROM outbox WHERE receiver = :receiver AND dedup_key = :key AND event = 'resolve' AND seq < :seq), 0)",
        {"receiver": row["receiver"], "key": row["dedup_key"], "seq": row["seq"]},
    )
    return [r["state"] for r in found]
