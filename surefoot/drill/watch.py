"""Following the platform's rows while a drill runs, and telling each milestone once, as it happens."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from pipeline.errors import StoreError
from pipeline.queries.run_incidents import run_incidents
from pipeline.records import IncidentTransition
from pipeline.store import Store
from surefoot.drill.pager import Pager, Received
from surefoot.drill.plan import Pause, Say, Truth

LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Watch:
    """What has been told of one fault. `incident` is its latest transition."""

    store: Store
    pager: Pager
    truth: Truth
    run: str
    say: Say
    pause: Pause
    incident: IncidentTransition | None = None
    told: dict[str, datetime] = field(default_factory=dict)

    def until_resolved(self, give_up: Callable[[], bool], seconds: float) -> bool:
        """Follow until the incident is resolved and its pages are out; False where that did not happen in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._look()
            if self.incident and self.incident.new_state == "resolved" and self._page("resolve") and self.incident.caught_up_at:
                return True
            if give_up():
                deadline = min(deadline, time.monotonic() + 10)  # the run is over: what is not there soon will not come
            self.pause(LOOK_SECONDS)
        return False

    def pages(self) -> list[Received]:
        """The events that the pager got for this incident."""
        key = self.incident.incident if self.incident else ""
        return [r for r in self.pager.received if r.dedup_key == key]

    def _page(self, action: str) -> Received | None:
        return next((r for r in self.pages() if r.action == action), None)

    def _look(self) -> None:
        try:
            rows = run_incidents(self.store, self.run)
        except StoreError:
            return  # the drill may have killed the store itself; it comes back
        mine = [r for r in rows if r.detected_at and r.detected_at >= self.truth.injected_at]
        if not mine:
            return
        first = mine[0].incident
        self.incident = i = [r for r in mine if r.incident == first][-1]
        where = f"{i.layer}, node {i.node}, rank {i.rank}"
        self._tell("detected", i.detected_at, i.title)
        self._tell("located", i.located_at, where)
        self._tell("acted", i.acted_at, i.reason)
        self._tell("restarted", i.recovered_at, "first step completed by the new attempt")
        self._tell("caught up", i.caught_up_at, "back at the step before the fault")
        self._tell("resolved", i.resolved_at, "")
        for action in ("trigger", "resolve"):
            if page := self._page(action):
                self._tell(f"paged ({action})", page.at, page.body.get("payload", {}).get("summary", "").partition(". ")[0])

    def _tell(self, milestone: str, at: datetime | None, text: str) -> None:
        if at is None or milestone in self.told:
            return
        self.told[milestone] = at
        self.say(f"  +{(at - self.truth.injected_at).total_seconds():6.2f} s  {milestone:<16} {text}".rstrip())
