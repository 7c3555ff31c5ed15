"""How far a run got around an incident: read while it recovers, and until it has caught up."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from alerts.book import Book
from alerts.incidents.advance import Facts, advance
from alerts.incidents.causes import awaited, deaths
from alerts.incidents.flapping import settled_at, settles
from alerts.incidents.last_words import LastWords
from alerts.incidents.lifecycle import State
from alerts.snapshot import RunLook, Snapshot
from pipeline.queries.last_step import last_step
from pipeline.queries.step_reached import step_reached
from pipeline.records import IncidentTransition

LOOK_SECONDS = 1.0  # between looks for a run that is catching up
LATE_STEPS = timedelta(minutes=1)  # after a run's end its last steps may still come in
MOVES = 8  # transitions that one incident may make in a tick; more would be a loop


@dataclass(slots=True)
class Progress:
    """Moves incidents along their lifecycle. Raises StoreError."""

    book: Book
    words: LastWords
    settle: float = 0.0  # seconds for which an incident stays open after its last finding went
    _lost_at: dict[str, int | None] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _reached: dict[tuple[str, tuple[str, ...], int], datetime | None] = field(default_factory=dict)  # asked in this tick
    _asked_at: datetime | None = None

    def advance_all(self, snapshot: Snapshot, monotonic: float) -> None:
        """Every incident as far as it can go now."""
        if snapshot.now != self._asked_at:
            self._reached, self._asked_at = {}, snapshot.now
        for incident in self.book.unsettled():
            if incident.new_state == State.RESOLVED and (
                monotonic < self._due.get(incident.incident, 0.0) or _never_will(snapshot.run(incident.run), snapshot.now)
            ):
                continue
            self._due[incident.incident] = monotonic + LOOK_SECONDS
            for _ in range(MOVES):
                last = self.book.incidents[incident.incident]
                following = advance(last, self._facts(last, snapshot), snapshot.now)
                if following is None:
                    break
                self.book.write(following)

    def _facts(self, incident: IncidentTransition, snapshot: Snapshot) -> Facts:
        run = snapshot.run(incident.run)
        actions = self.book.actions_of(incident.incident)
        recovered_at = incident.recovered_at or self._recovered(incident)
        return Facts(
            findings=self.book.findings_of(incident.incident),
            cleared=self.book.cleared.get(incident.incident, ""),
            settled=settled_at(self.book.past_of(incident.incident), self.settle) if settles(incident) else None,
            awaited=self._awaited(incident, snapshot) if recovered_at else None,
            run=run,
            action=max(actions, key=lambda a: a.at, default=None),
            recovered_at=recovered_at,
            caught_up_at=incident.caught_up_at or (self._caught_up(incident, run) if recovered_at and run else None),
        )

    def _awaited(self, incident: IncidentTransition, snapshot: Snapshot) -> datetime | None:
        if incident.new_state != State.RECOVERING or self.book.findings_of(incident.incident):
            return None
        told = deaths(self.book.past_of(incident.incident), self.words.of(incident, snapshot.now))
        return awaited(incident, told, snapshot.agent_interval)

    def _recovered(self, incident: IncidentTransition) -> datetime | None:
        if incident.new_state not in (State.RECOVERING, State.RESOLVED) or not incident.next_attempt:
            return None
        return self._when(incident.run, (incident.next_attempt,), 0)

    def _caught_up(self, incident: IncidentTransition, run: RunLook) -> datetime | None:
        """When a later attempt was back at the last step before the failure; where there was none, the first step is that."""
        failed = run.attempt(incident.attempt)
        if failed is None or not incident.next_attempt:
            return None
        following = run.attempt(incident.next_attempt)
        until = following.launch if following else failed.launch + 1
        if incident.incident not in self._lost_at:
            earlier = [a.attempt for a in run.attempts if a.launch < until]
            self._lost_at[incident.incident] = last_step(self.book.store, incident.run, earlier)
        lost_at = self._lost_at[incident.incident]
        later = tuple(a.attempt for a in run.attempts if a.launch >= until)
        return self._when(incident.run, later, lost_at or 0)

    def _when(self, run: str, attempts: tuple[str, ...], step: int) -> datetime | None:
        """When one of `attempts` completed `step`; asked once a tick."""
        asked = (run, attempts, step)
        if asked not in self._reached:
            self._reached[asked] = step_reached(self.book.store, run, attempts, step)
        return self._reached[asked]


def _never_will(run: RunLook | None, now: datetime) -> bool:
    """Whether no further step of `run` can come."""
    return run is None or (run.state != "started" and now - run.changed_at > LATE_STEPS)
