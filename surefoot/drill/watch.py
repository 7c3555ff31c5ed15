"""Following the platform's rows while a drill runs, and telling each milestone once, as it happens."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from pipeline.clock import utcnow
from pipeline.errors import StoreError
from pipeline.queries.run_incidents import run_incidents
from pipeline.records import IncidentTransition
from pipeline.store import Store
from surefoot.drill.pager import Pager, Received
from surefoot.drill.plan import Pause, Say, Truth

LOOK_SECONDS = 1.0
SETTLED = timedelta(seconds=2)  # after which what else happened by then is known: milestones are told in the order of their times
LATE = 30.0  # seconds after a run's end for which its last steps may still be on their way


@dataclass(slots=True)
class Watch:
    """What has been told of one fault. `incident` is its latest transition. `remove` takes the fault away and says how: it is called
    once somebody has been paged; None where nothing is to be taken away."""

    store: Store
    pager: Pager
    truth: Truth
    run: str
    say: Say
    pause: Pause
    remove: Callable[[], str] | None = None
    removed_at: datetime | None = None
    incident: IncidentTransition | None = None
    others: dict[str, str] = field(default_factory=dict)  # titles of further incidents, by id
    reached: dict[str, tuple[datetime, str]] = field(default_factory=dict)  # by milestone: when, and its words
    told: set[str] = field(default_factory=set)

    def until_resolved(self, give_up: Callable[[], bool], seconds: float) -> bool:
        """Follow until the incident is resolved and its pages are out; False where that did not happen in time."""
        over = self._followed(give_up, time.monotonic() + seconds)
        self.tell()
        return over

    def _followed(self, give_up: Callable[[], bool], deadline: float) -> bool:
        while time.monotonic() < deadline:
            self.look()
            if self._page("trigger"):
                self.take_away()
            if self._over():
                return True
            if give_up():
                deadline = min(deadline, time.monotonic() + LATE)  # the run is over: what is not there soon will not come
            self.pause(LOOK_SECONDS)
        return False

    def until_found(self, give_up: Callable[[], bool], seconds: float) -> None:
        """Follow for so long, or until there is an incident."""
        deadline = time.monotonic() + seconds
        while not self.incident and not give_up() and time.monotonic() < deadline:
            self.pause(LOOK_SECONDS)
            self.look()
        self.tell()

    def take_away(self) -> None:
        """Take the fault away, where that has not been done."""
        if self.remove and self.removed_at is None:
            how = self.remove()
            self.removed_at = utcnow()
            self._reach("removed", self.removed_at, how)

    def pages(self) -> list[Received]:
        """The events that the pager got for this incident."""
        key = self.incident.incident if self.incident else ""
        return [r for r in self.pager.received if r.dedup_key == key]

    def _over(self) -> bool:
        i = self.incident
        if i is None or i.new_state != "resolved" or self._page("resolve") is None:
            return False
        return not self.truth.mended_by_action or i.caught_up_at is not None

    def _page(self, action: str) -> Received | None:
        return next((r for r in self.pages() if r.action == action), None)

    def look(self) -> None:
        """What there is by now, told where it has not been."""
        try:
            rows = run_incidents(self.store, self.run) + [r for r in run_incidents(self.store, "") if self._same_place(r)]
        except StoreError:
            return  # the drill may have killed the store itself; it comes back
        merged = {r.incident for r in rows if r.merged_into}  # what was seen to be part of another is no further one
        rows = [r for r in rows if r.incident not in merged]
        mine = sorted((r for r in rows if r.detected_at and r.detected_at >= self.truth.injected_at), key=lambda r: r.at)
        if not mine:
            return
        first = mine[0].incident
        self.others = {r.incident: r.title for r in mine if r.incident != first}
        transitions = [r for r in mine if r.incident == first]
        self.incident = transitions[-1]
        for at, milestone, text in milestones(transitions):
            self._reach(milestone, at, text)
        for action in ("trigger", "resolve"):
            if page := self._page(action):
                self._reach(f"paged ({action})", page.at, page.body.get("payload", {}).get("summary", "").partition(". ")[0])
        self.tell(utcnow() - SETTLED)

    def _same_place(self, i: IncidentTransition) -> bool:
        """Of a node's own incidents, one about the drill's fault where the drill brought it about."""
        located = self.truth.located
        return (i.fault, i.node, i.device) == (self.truth.fault.name, located.node, located.device)

    def _reach(self, milestone: str, at: datetime, text: str) -> None:
        self.reached.setdefault(milestone, (at, text))

    def tell(self, until: datetime | None = None) -> None:
        """Say what was reached and was not said yet, in the order of its times, as far as `until`."""
        for milestone, (at, text) in sorted(self.reached.items(), key=lambda one: one[1][0]):
            if milestone not in self.told and (until is None or at <= until):
                self.told.add(milestone)
                self.say(f"  +{(at - self.truth.injected_at).total_seconds():6.2f} s  {milestone:<16} {text}".rstrip())


def milestones(transitions: Sequence[IncidentTransition]) -> Iterator[tuple[datetime, str, str]]:
    """What an incident has come to, in the words of when it did."""
    since: dict[str, datetime] = {}
    for i in transitions:
        thing = i.device or ("" if i.rank is None else f"rank {i.rank}")
        where = ", ".join(filter(None, (i.layer, f"node {i.node}", thing)))
        reached = {
            "detected": (i.detected_at, i.title),
            "located": (i.located_at, where),
            "acted": (i.acted_at, i.reason),
            "restarted": (i.recovered_at, "first step completed by the new attempt"),
            "caught up": (i.caught_up_at, "back at the step before the fault"),
            "resolved": (i.resolved_at, "" if i.recovered_at else i.reason),
        }
        for milestone, (at, text) in reached.items():
            if at and milestone not in since:
                since[milestone] = at
                yield at, milestone, text
    for before, after in pairwise(transitions):
        if before.located_at and before.fault != after.fault:
            yield after.at, "explained", after.title
