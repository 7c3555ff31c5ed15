"""The leader's own rows, in memory: what is open and what may still change. Read from the store at start and after any failure.

Nobody but the leader writes these tables, so between two reads the book is the present. `write` stores
first and remembers then: what the book holds is in the store.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from alerts.ids import mint
from alerts.incidents.lifecycle import State
from alerts.recovery.envelope import PENDING, UNDER_WAY
from pipeline.clock import to_micros
from pipeline.hold_records import HoldTransition
from pipeline.queries.actions_of import actions_of
from pipeline.queries.findings_open import findings_open
from pipeline.queries.findings_past import findings_past
from pipeline.queries.incidents_unsettled import incidents_unsettled
from pipeline.queries.maintenance_since import maintenance_since
from pipeline.queries.pages_queued import pages_queued
from pipeline.queries.pauses_since import pauses_since
from pipeline.queries.silences_since import silences_since
from pipeline.records import (
    ActionTransition,
    AttemptTransition,
    FindingTransition,
    IncidentTransition,
    NotificationTransition,
    RunTransition,
    Transition,
)
from pipeline.store import Store

WRITTEN = (FindingTransition, IncidentTransition, ActionTransition, NotificationTransition, AttemptTransition)
SETTLING = timedelta(days=1)  # a resolved incident may still catch up, and its pages go out, for so long


@dataclass(slots=True)
class Book:
    """What is open, by id. `cleared` tells why an incident's last finding went; `paged` holds ids of queued notifications.

    `past` holds the cleared findings of incidents that may still change, or whose nodes are known by their findings alone.
    """

    store: Store
    findings: dict[str, FindingTransition] = field(default_factory=dict)
    past: dict[str, FindingTransition] = field(default_factory=dict)
    incidents: dict[str, IncidentTransition] = field(default_factory=dict)
    actions: dict[str, ActionTransition] = field(default_factory=dict)
    paged: set[str] = field(default_factory=set)
    cleared: dict[str, str] = field(default_factory=dict)
    holds: dict[str, HoldTransition] = field(default_factory=dict)  # also those that ended within SETTLING

    def write(self, *made: Transition) -> None:
        """Store transitions, one insert each, and remember them. Raises StoreError: then the book must be read again."""
        for one in made:
            self.store.insert([one], token=self._token(one))
            self._remember(one)

    def write_together(self, made: Sequence[Transition]) -> None:
        """Store transitions of one kind, each of another thing, in one insert: that costs as much as one of them. Raises StoreError."""
        if made:
            tokens = [self._token(one) for one in made]
            self.store.insert(made, token=tokens[0] if len(tokens) == 1 else f"together:{mint(*tokens)}")
        for one in made:
            self._remember(one)

    def write_end(self, last: RunTransition, end: RunTransition) -> None:
        """Store the end of a run, after the `last` thing that its launcher wrote of it. Raises StoreError."""
        self.store.insert([end], token=f"run:{end.run}:{_after(last)}")

    def _remember(self, one: Transition) -> None:
        match one:
            case FindingTransition(new_state="open"):
                self.findings[one.finding] = one
            case FindingTransition():
                self.findings.pop(one.finding, None)
                self.past[one.finding] = one
                self.cleared[one.incident] = one.reason
            case IncidentTransition():
                self.incidents[one.incident] = one
            case ActionTransition():
                self.actions[one.action] = one
            case NotificationTransition():
                self.paged.add(one.notification)
            case HoldTransition():
                self.holds[one.hold] = one
            case _:
                pass

    def _token(self, one: Transition) -> str:
        """Only one transition can follow a given one: that is what makes it the same one when it is written again."""
        match one:
            case FindingTransition():
                return f"finding:{one.finding}:{_after(self.findings.get(one.finding))}"
            case IncidentTransition():
                return f"incident:{one.incident}:{_after(self.incidents.get(one.incident))}"
            case ActionTransition():
                return f"action:{one.action}:{_after(self.actions.get(one.action))}"
            case NotificationTransition():
                return f"notification:{one.notification}:{one.new_state}"
            case HoldTransition():
                return f"hold:{one.hold}:{_after(self.holds.get(one.hold))}"
            case AttemptTransition():
                return f"attempt:{one.attempt}:{one.new_state}"
            case _:
                raise TypeError(f"the leader does not write {type(one).__name__}")

    def unresolved(self) -> list[IncidentTransition]:
        """The incidents that are not resolved, oldest first."""
        return [i for i in self.incidents.values() if i.new_state != State.RESOLVED]

    def unsettled(self) -> list[IncidentTransition]:
        """Those, and the resolved ones of which it is not known yet that the attempt after them has caught up."""
        return [i for i in self.incidents.values() if i.new_state != State.RESOLVED or (i.next_attempt and not i.caught_up_at)]

    def findings_of(self, incident: str) -> tuple[FindingTransition, ...]:
        """The open findings of an incident, oldest first."""
        return tuple(f for f in self.findings.values() if f.incident == incident)

    def past_of(self, incident: str) -> list[FindingTransition]:
        """The cleared findings of an incident, and of those that were merged into it."""
        return [f for f in self.past.values() if self.root(f.incident) == incident]

    def nodes_of(self, incident: str) -> list[str]:
        """The nodes that an incident's findings are about, also those that are over."""
        return sorted({f.node for f in (*self.findings_of(incident), *self.past_of(incident)) if f.node})

    def root(self, incident: str) -> str:
        """The incident that `incident` turned out to be; itself where it was not merged."""
        while (known := self.incidents.get(incident)) and known.merged_into:
            incident = known.merged_into
        return incident

    def actions_of(self, incident: str) -> list[ActionTransition]:
        """The actions of an incident, oldest first."""
        return [a for a in self.actions.values() if a.incident == incident]

    def open_actions(self) -> list[ActionTransition]:
        """The actions that wait or are under way."""
        return [a for a in self.actions.values() if a.new_state in PENDING | UNDER_WAY]

    def runs(self) -> Iterable[str]:
        """The runs that something open is about."""
        return {
            *(i.run for i in self.unsettled() if i.run),
            *(a.run for a in self.open_actions()),
            *(f.run for f in self.findings.values()),
        }

    def forget(self, now: datetime) -> None:
        """Drop what has been settled for long."""
        old = {i.incident for i in self.incidents.values() if i.resolved_at and now - i.resolved_at > SETTLING}
        for incident in old:
            del self.incidents[incident]
            self.cleared.pop(incident, None)
        self.past = {k: f for k, f in self.past.items() if self.counts(self.root(f.incident))}
        runs = {i.run for i in self.unresolved() if i.run}
        kept = {a.action for a in self.open_actions()}
        self.actions = {k: a for k, a in self.actions.items() if k in kept or a.incident in self.incidents or a.run in runs}
        self.holds = {k: h for k, h in self.holds.items() if h.new_state != "ended" or now - h.at <= SETTLING}

    def counts(self, incident: str) -> bool:
        """Whether the cleared findings of an incident still matter: of one about a place they name its nodes."""
        known = self.incidents.get(incident)
        return known is not None and (known.new_state != State.RESOLVED or not (known.run or known.node))


def read_book(store: Store, now: datetime) -> Book:
    """The book as the rows tell it. Raises StoreError."""
    book = Book(store)
    store.prepare(WRITTEN)  # a fault is no time to ask what tables look like
    for finding in findings_open(store):
        book.findings[finding.finding] = finding
    for incident in incidents_unsettled(store, now - SETTLING):
        book.incidents[incident.incident] = incident
    names = list(book.incidents)
    for finding in findings_past(store, [n for n in names if book.counts(book.root(n))]) if names else ():
        book.past[finding.finding] = finding
        book.cleared[book.root(finding.incident)] = finding.reason
    for action in actions_of(store, names, sorted({i.run for i in book.unresolved() if i.run})):
        book.actions[action.action] = action
    book.paged = pages_queued(store, names) if names else set()
    for hold in (*silences_since(store, now - SETTLING), *maintenance_since(store, now - SETTLING), *pauses_since(store, now - SETTLING)):
        book.holds[hold.hold] = hold
    return book


def _after(last: Transition | None) -> str:
    return f"after:{to_micros(last.at)}" if last else "first"
