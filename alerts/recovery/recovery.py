"""Recovery: incidents into actions, and launchers' answers into their progress."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from alerts.book import Book
from alerts.detectors.verdict import Verdict, key_of
from alerts.ids import mint
from alerts.incidents.correlate import first_finding, rerooted
from alerts.incidents.lifecycle import State, move
from alerts.recovery.actuators import gather, launcher
from alerts.recovery.actuators.gather import short_of
from alerts.recovery.envelope import (
    FAILED,
    PENDING,
    REFUSED,
    UNDER_WAY,
    expire,
    propose,
    renew,
    settled_by_rows,
    stale,
    withdraw,
    withdrawn,
)
from alerts.recovery.policy import Case, Proposal, Refusal, Restart, decide
from alerts.silences import Held, withheld
from alerts.snapshot import AttemptLook, RunLook, Snapshot
from alerts.transitions import follow
from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.faults import HOST_DOWN, NODE_LEFT, Fault
from pipeline.queries.last_step import last_step
from pipeline.queries.restarts_of_run import restarts_of_run
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition
from pipeline.settings import Settings

POLICY = "policy"


@dataclass(slots=True)
class Recovery:
    """Decides and issues. `term` is the leader's. All methods raise StoreError."""

    book: Book
    settings: Settings
    term: int
    _said: dict[str, str] = field(default_factory=dict)

    def take_over(self, now: datetime) -> None:
        """Stand by the issued actions of an earlier leader: launchers refuse its older term."""
        for action in self.book.open_actions():
            if action.new_state == "issued" and action.term < self.term and not self.withheld(action, now):
                self.book.write(renew(action, self.term, now))

    def follow_up(self, snapshot: Snapshot, now: datetime) -> None:
        """Bring the open actions up to date: answers, effects seen, deadlines, reasons that are gone."""
        for action in [*self.book.open_actions(), *filter(withdrawn, self.book.actions.values())]:
            run = snapshot.run(action.run)
            last = action
            for step in launcher.answered(action, snapshot.answers, run.attempt(action.attempt) if run else None):
                self.book.write(step)
                last = step
            if last.new_state in UNDER_WAY:
                step_or_none = settled_by_rows(last, run, now) or expire(last, now)
            elif last.new_state in PENDING and (reason := self.stale(last, run)):
                step_or_none = follow(last, "cancelled", f"not needed any more: {reason}", now)
            else:
                step_or_none = None
            if step_or_none:
                self.book.write(step_or_none)

    def bring_together(self, snapshot: Snapshot, now: datetime) -> None:
        """Issue the next attempt of each restart whose launchers, one a node, have all stopped or are known not to."""
        for action in self.book.open_actions():
            if action.kind == RESTART_RUN.name and action.new_state in UNDER_WAY:
                self.book.write(*gather.again(snapshot, action, self._gone(action.attempt), self.settings.recovery.gather, now))

    def _gone(self, attempt: str) -> dict[str, str]:
        """The nodes that are known not to take part in the attempt after `attempt` unless they are heard again, and why."""
        found = [f for f in self.book.findings.values() if f.node]
        left = {f.node: "its launcher is gone" for f in found if f.fault == NODE_LEFT.name and f.attempt == attempt}
        return left | {f.node: "its host is down" for f in found if f.fault == HOST_DOWN.name}

    def withheld(self, action: ActionTransition, now: datetime) -> str | None:
        """Why nothing may be done that `action` does; None where it may."""
        held = self._held(self.book.incidents.get(action.incident), {action.node}, action.attempt, now)
        return held.reason if held else None

    def _held(self, incident: IncidentTransition | None, nodes: set[str], attempt: str, now: datetime) -> Held | None:
        """What keeps us from acting on `nodes` of an attempt. A node that is gone is not acted on: a restart goes on without it."""
        gone = self._gone(attempt).keys()
        if incident and incident.node in gone:
            incident = replace(incident, node="")
        return withheld(self.book.holds.values(), now, incident, nodes - gone)

    def withdraw(self, now: datetime) -> None:
        """Take back what is under way and may not be done any more."""
        for action in self.book.open_actions():
            reason = self.withheld(action, now)
            if reason and (step := withdraw(action, reason, now)):
                self.book.write(step)

    def stale(self, action: ActionTransition, run: RunLook | None) -> str | None:
        """Why an action's reasons no longer hold, by what the book and the snapshot say now; None while they do."""
        if reason := stale(action, self.book.incidents.get(action.incident), run):
            return reason
        if action.incident and not any(f.attempt == action.attempt for f in self.book.findings_of(action.incident)):
            return "what it answered is over"
        return None

    def act(self, incident: IncidentTransition, snapshot: Snapshot, now: datetime) -> None:
        """Decide about an open incident, and issue what is decided; a refusal is written where its reason is new."""
        run = snapshot.run(incident.run)
        if incident.new_state != State.OPEN or run is None or run.state != "started" or run.current is None:
            return
        finding = self._failing(incident, run.current)
        if finding is None or self._busy(incident, run.current):
            return
        if held := self._held(incident, set(run.members), run.current.attempt, now):
            self._refuse(incident, Refusal(held.reason), now)
            return
        decided = decide(self._case(finding, incident, run, snapshot, now), now)
        if isinstance(decided, Proposal):
            decided = self._propose(decided, incident, run, now)
        if isinstance(decided, Refusal):
            self._refuse(incident, decided, now)

    def _failing(self, incident: IncidentTransition, current: AttemptLook) -> FindingTransition | None:
        mine = [f for f in self.book.findings_of(incident.incident) if f.attempt == current.attempt]
        return next((f for f in mine if FAULTS[f.fault].first_action), None)

    def _busy(self, incident: IncidentTransition, current: AttemptLook) -> bool:
        """An action on this attempt stands already, or a person said no to it."""
        mine = (a for a in self.book.actions_of(incident.incident) if a.attempt == current.attempt)
        states = {a.new_state for a in mine if not withdrawn(a)}
        return bool(states - FAILED)

    def _case(self, finding: FindingTransition, incident: IncidentTransition, run: RunLook, snapshot: Snapshot, now: datetime) -> Case:
        current = run.current
        assert current
        since = now - timedelta(seconds=self.settings.recovery.window)
        earlier = restarts_of_run(self.book.store, run.run, since) if current.launch > 1 else []  # a first attempt followed none
        return Case(
            fault=FAULTS[finding.fault],
            run=run,
            attempt=current,
            node=finding.node,
            rank=finding.rank,
            last_step=last_step(self.book.store, run.run, [current.attempt]) if earlier else None,
            restarts=[
                Restart(
                    attempt=r.attempt, new_attempt=r.new_attempt, at=r.at, fault=r.fault, node=r.node, rank=r.rank, last_step=r.last_step
                )
                for r in earlier
            ],
            tries=self._tries(incident, current),
            short=self._short(finding, run, current, snapshot),
            settings=self.settings.recovery,
        )

    def _short(self, finding: FindingTransition, run: RunLook, current: AttemptLook, snapshot: Snapshot) -> str:
        down = finding.fault == HOST_DOWN.name
        return short_of(snapshot, run, finding.node if down else "") if down or current.nodes else ""

    def _tries(self, incident: IncidentTransition, current: AttemptLook) -> int:
        mine = [a for a in self.book.actions_of(incident.incident) if a.attempt == current.attempt]
        return sum(a.new_state in FAILED for a in mine)

    def _propose(self, proposal: Proposal, incident: IncidentTransition, run: RunLook, now: datetime) -> Proposal | Refusal:
        if proposal.fault:
            incident = self._reroot(incident, proposal.fault, proposal.reason, now)
        mode = self.settings.recovery.mode(proposal.kind)
        earlier = sum(a.kind == proposal.kind.name and a.attempt == proposal.attempt for a in self.book.actions_of(incident.incident))
        action = propose(proposal, incident, mode, term=self.term, earlier=earlier, node=run.node, now=now)
        if isinstance(action, Refusal):
            return action
        self.book.write(action)
        return proposal

    def _reroot(self, incident: IncidentTransition, fault: Fault, reason: str, now: datetime) -> IncidentTransition:
        """The incident is now about something worse than what it began with: a finding says so, its first ones stay.

        Who acknowledged it knew of a failure that is being mended, not of this: somebody has to acknowledge it again.
        """
        if incident.fault == fault.name:
            return incident
        verdict = Verdict(
            key=key_of(f"{POLICY}/{fault.name}", f"incident:{incident.incident}", incident.run),
            detector=POLICY,
            fault=fault,
            run=incident.run,
            attempt=incident.attempt,
            reason=reason,
            onset=incident.onset or now,
            node=incident.node,
            rank=incident.rank,
        )
        self.book.write(first_finding(verdict, mint("finding", verdict.key), incident.incident, now, "{}"))
        changes = rerooted(incident, fault, incident.node, incident.rank, incident.confidence) | {"acknowledged_by": ""}
        worse = move(incident, State.OPEN, reason, now, **changes)
        self.book.write(worse)
        return worse

    def _refuse(self, incident: IncidentTransition, refusal: Refusal, now: datetime) -> None:
        last = self.book.incidents[incident.incident]
        said = REFUSED + refusal.reason
        if self._said.get(incident.incident) != said and last.reason != said:
            self.book.write(move(last, State.OPEN, said, now))
        self._said[incident.incident] = said
