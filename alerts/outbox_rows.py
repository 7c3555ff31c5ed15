"""Rows of the outbox: its tables, and what is read from them."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from alerts.receivers.page import Page, from_json
from pipeline.clock import from_micros

SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, notification TEXT NOT NULL UNIQUE, receiver TEXT NOT NULL, incident TEXT NOT NULL,
    event TEXT NOT NULL, dedup_key TEXT NOT NULL, page TEXT NOT NULL, priority INTEGER NOT NULL, queued_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'queued', reason TEXT NOT NULL DEFAULT '',
    settled_at INTEGER, reported INTEGER NOT NULL DEFAULT 0, carried_by INTEGER);
CREATE INDEX IF NOT EXISTS outbox_key ON outbox (receiver, dedup_key, seq);
CREATE INDEX IF NOT EXISTS outbox_open ON outbox (receiver, state, reported);
CREATE TABLE IF NOT EXISTS sends (bucket TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS pauses (bucket TEXT PRIMARY KEY, until INTEGER NOT NULL);
"""
HEADS = """
SELECT o.* FROM outbox o WHERE o.receiver = ? AND o.state = 'queued' AND o.carried_by IS NULL AND NOT EXISTS (
    SELECT 1 FROM outbox p
    WHERE p.receiver = o.receiver AND p.dedup_key = o.dedup_key AND p.state = 'queued' AND p.carried_by IS NULL AND p.seq < o.seq)
ORDER BY o.priority, o.seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A notification on its way. `tries` counts those already begun."""

    seq: int
    notification: str
    receiver: str
    incident: str
    page: Page
    tries: int
    next_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a notification. `state` is sent or failed, `reason` what the receiver said."""

    notification: str
    incident: str
    receiver: str
    event: str
    dedup_key: str
    state: str
    reason: str
    tries: int
    at: datetime


def queued_of(row: sqlite3.Row) -> Queued:
    """The notification that is kept in `row`."""
    return Queued(
        seq=row["seq"],
        notification=row["notification"],
        receiver=row["receiver"],
        incident=row["incident"],
        page=from_json(row["page"]),
        tries=row["tries"],
        next_at=from_micros(row["next_at"]),
    )


def result_of(row: sqlite3.Row) -> Result:
    """The outcome that is kept in `row` of a settled notification."""
    return Result(
        notification=row["notification"],
        incident=row["incident"],
        receiver=row["receiver"],
        event=row["event"],
        dedup_key=row["dedup_key"],
        state=row["state"],
        reason=row["reason"],
        tries=row["tries"],
        at=from_micros(row["settled_at"]),
    )
