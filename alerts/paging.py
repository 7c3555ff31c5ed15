"""Queueing pages: one trigger a receiver and incident, one resolve, the same key. What was missed is made up for at the next tick."""

from collections.abc import Mapping
from datetime import datetime

from alerts.book import Book
from alerts.outbox import Outbox, Result
from alerts.pages import events_due, notification_id, page
from alerts.receivers.page import TRIGGER, PageEvent
from alerts.receivers.registry import Receiver, wants
from alerts.transitions import LEADER
from pipeline.records import IncidentTransition, NotificationTransition
from pipeline.store import Store


class Paging:
    """The outbox's writing side. It keeps on disk first, then writes the row: a page is never lost, nor queued twice."""

    def __init__(self, outbox: Outbox, receivers: Mapping[str, Receiver], link: str) -> None:
        self._outbox, self._receivers, self._link = outbox, receivers, link

    def queue(self, book: Book, now: datetime) -> None:
        """Queue what is due and was not queued. Raises StoreError and OutboxError; to be called again then."""
        for incident in book.incidents.values():
            for name, receiver in self._receivers.items():
                for event in events_due(incident):
                    if self._wanted(book, incident, event, name, receiver):
                        self._one(book, incident, event, name, now)

    def _wanted(self, book: Book, incident: IncidentTransition, event: PageEvent, name: str, receiver: Receiver) -> bool:
        if notification_id(incident.incident, event, name) in book.paged:
            return False
        if event == TRIGGER:
            return wants(receiver, incident.severity)
        return notification_id(incident.incident, TRIGGER, name) in book.paged  # who was not woken is not told to sleep

    def _one(self, book: Book, incident: IncidentTransition, event: PageEvent, receiver: str, now: datetime) -> None:
        told = page(incident, event, book.findings_of(incident.incident), book.actions_of(incident.incident), self._link, now)
        notification = notification_id(incident.incident, event, receiver)
        self._outbox.enqueue(notification, receiver=receiver, incident=incident.incident, page=told, now=now)
        book.write(
            NotificationTransition(
                old_state="",
                new_state="queued",
                reason=told.summary,
                actor=LEADER,
                at=now,
                notification=notification,
                incident=incident.incident,
                receiver=receiver,
                event=event,
                dedup_key=told.dedup_key,
            )
        )


def record_result(store: Store, result: Result) -> None:
    """Write what became of a notification. Raises StoreError: delivery calls again until it is written."""
    row = NotificationTransition(
        old_state="queued",
        new_state=result.state,
        reason=result.reason,
        actor="delivery",
        at=result.at,
        notification=result.notification,
        incident=result.incident,
        receiver=result.receiver,
        event=result.event,
        dedup_key=result.dedup_key,
        tries=result.tries,
    )
    store.insert([row], token=f"notification:{result.notification}:{result.state}")
