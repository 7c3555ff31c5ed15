"""Queueing pages: one trigger a receiver and alert, one resolve, the same key. What was missed is made up for at the next tick."""

from collections.abc import Mapping
from datetime import datetime

from alerts.book import Book
from alerts.detectors.fault_rule import runs_by_node
from alerts.incidents.causes import may_grow
from alerts.incidents.flapping import settled_at, settles
from alerts.incidents.siblings import waits
from alerts.outbox import Outbox, Result
from alerts.page_facts import Facts, gather
from alerts.pages import alerts_due, events_due, notification_id, page
from alerts.receivers.page import TRIGGER, PageEvent
from alerts.receivers.registry import Receiver, wants
from alerts.silences import Held, quiet
from alerts.snapshot import Snapshot
from alerts.transitions import LEADER
from pipeline.records import IncidentTransition, NotificationTransition
from pipeline.settings import ConsoleSettings
from pipeline.store import Store
from pipeline.topology import Topology


class Paging:
    """The outbox's writing side. It keeps on disk first, then writes the row: a page is never lost, nor queued twice."""

    def __init__(self, outbox: Outbox, receivers: Mapping[str, Receiver], console: ConsoleSettings, topology: Topology) -> None:
        self._outbox, self._receivers, self._console, self._topology = outbox, receivers, console, topology

    def queue(self, book: Book, snapshot: Snapshot, now: datetime) -> None:
        """Queue what is due and was not queued. Raises StoreError and OutboxError; to be called again then."""
        for incident in list(book.incidents.values()):
            due = [(n, a, e) for n, r in self._receivers.items() for a, e in _due(book, incident, n, r)]
            untold = {(n, a) for n, a, e in due if e == TRIGGER}
            if untold and self._withheld(book, snapshot, incident, now):
                due = [(n, a, e) for n, a, e in due if (n, a) not in untold]  # who was told before still hears how it ends
            if due:
                facts = gather(book, snapshot, incident, self._console, now)
                for name, alert, event in due:
                    self._one(book, incident, facts, (name, alert, event), now)

    def _withheld(self, book: Book, snapshot: Snapshot, incident: IncidentTransition, now: datetime) -> bool:
        """Whether nobody who was not told before is told of an incident now."""
        if incident.merged_into or waits(incident, book.unresolved(), self._topology, now) or _may_grow(book, snapshot, incident, now):
            return True
        nodes = () if incident.node or incident.run else book.nodes_of(incident.incident)
        settled = None if book.findings_of(incident.incident) or not settles(incident) else settled_at(book.past_of(incident.incident), 0)
        if held := quiet(incident, book.holds.values(), settled[0] if settled else now, nodes):
            _note(book, incident, held, now)
        return held is not None

    def _one(self, book: Book, incident: IncidentTransition, facts: Facts, what: tuple[str, str, PageEvent], now: datetime) -> None:
        receiver, alert, event = what
        told = page(incident, event, facts, now, alert)
        notification = notification_id(incident.incident, event, receiver, alert)
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


def _due(book: Book, incident: IncidentTransition, name: str, receiver: Receiver) -> list[tuple[str, PageEvent]]:
    """The alerts and events that a receiver is to get now, in order; who was not woken is not told to sleep."""
    main = notification_id(incident.incident, TRIGGER, name) in book.paged
    due: list[tuple[str, PageEvent]] = []
    for alert in alerts_due(incident, main):
        told = notification_id(incident.incident, TRIGGER, name, alert) in book.paged
        if not told and not wants(receiver, incident.severity):
            continue
        due += [(alert, e) for e in events_due(incident) if notification_id(incident.incident, e, name, alert) not in book.paged]
    return due


def _may_grow(book: Book, snapshot: Snapshot, incident: IncidentTransition, now: datetime) -> bool:
    there = runs_by_node(snapshot)
    return may_grow(incident, (run for node in book.nodes_of(incident.incident) for run in there.get(node, ())), now)


def _note(book: Book, incident: IncidentTransition, held: Held, now: datetime) -> None:
    """Say once, in the incident's own rows, that its page was held back and why."""
    notification = f"{incident.incident}:held:{held.hold}"
    if notification in book.paged:
        return
    book.write(
        NotificationTransition(
            old_state="",
            new_state="held",
            reason=held.reason,
            actor=LEADER,
            at=now,
            notification=notification,
            incident=incident.incident,
            receiver="",
            event=TRIGGER,
            dedup_key=incident.incident,
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
