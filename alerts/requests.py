"""What people ask for, carried out once each: the answer is a transition that bears their name.

Carrying out is idempotent by itself, and the intent's watermark comes after it: a kill between the two
repeats what then changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from alerts.book import Book
from alerts.holds import Holds
from alerts.incidents.lifecycle import State, move
from alerts.recovery.envelope import PENDING, approve, asked_stop
from alerts.recovery.recovery import Recovery
from alerts.silences import ASKS
from alerts.snapshot import Snapshot
from alerts.transitions import follow
from pipeline.catalog.actions import BY_NAME, STOP_RUN
from pipeline.catalog.layers import ActionMode
from pipeline.queries.requests_new import JOB
from pipeline.records import Request
from pipeline.settings import Settings

log = structlog.get_logger("surefoot.requests")


@dataclass(frozen=True, slots=True)
class Requests:
    """Carries out requests. Raises StoreError: then they are carried out again."""

    book: Book
    recovery: Recovery
    settings: Settings

    def carry_out(self, asked: Iterable[Request], snapshot: Snapshot, now: datetime) -> None:
        """Carry out `asked`, oldest first."""
        for request in asked:
            answer = self._one(request, snapshot, now)
            log.info("request", kind=request.kind, target=request.target, actor=request.actor, answer=answer)
            row = {"job": JOB, "at": now, "value": request.intent}
            self.book.store.insert_rows("watermarks", [row], token=f"{JOB}:{request.intent}")

    def _one(self, request: Request, snapshot: Snapshot, now: datetime) -> str:
        match request.kind:
            case "approve":
                return self._approve(request, snapshot, now)
            case "cancel":
                return self._cancel(request, now)
            case "acknowledge":
                return self._acknowledge(request, now)
            case STOP_RUN.name:
                return self._stop(request, snapshot, now)
            case kind if kind in ASKS:
                return Holds(self.book).carry_out(request, now)
            case _:
                return "unknown kind: nothing is done"

    def _approve(self, request: Request, snapshot: Snapshot, now: datetime) -> str:
        action = self.book.actions.get(request.target)
        if action is None or action.new_state not in PENDING:
            return "no such action waits"
        if self.settings.recovery.mode(BY_NAME[action.kind]) is ActionMode.OFF:
            self.book.write(follow(action, "cancelled", f"{action.kind} is switched off", now, actor=request.actor))
            return "switched off"
        if reason := self.recovery.stale(action, snapshot.run(action.run)):
            self.book.write(follow(action, "cancelled", f"approved too late: {reason}", now, actor=request.actor))
            return reason
        if held := self.recovery.withheld(action, now):
            self.book.write(follow(action, action.new_state, f"not issued: {held}; approve it again after that", now, actor=request.actor))
            return held
        self.book.write(approve(action, request.actor, request.reason, self.recovery.term, now))
        return "issued"

    def _cancel(self, request: Request, now: datetime) -> str:
        action = self.book.actions.get(request.target)
        if action is None or action.new_state not in PENDING | {"issued"}:
            return "no such action waits"
        if action.new_state == "issued":
            if action.actor != request.actor:  # said once
                self.book.write(follow(action, "issued", "too late to cancel: the launcher may have taken it up", now, actor=request.actor))
            return "too late"
        self.book.write(follow(action, "cancelled", request.reason or "cancelled", now, actor=request.actor))
        return "cancelled"

    def _acknowledge(self, request: Request, now: datetime) -> str:
        incident = self.book.incidents.get(request.target)
        if incident is None:
            return "no such incident is open"
        if incident.new_state == State.RESOLVED:
            return "it is resolved already"
        if incident.acknowledged_by:
            return f"acknowledged by {incident.acknowledged_by} before"
        reason = request.reason or "acknowledged"
        self.book.write(move(incident, State(incident.new_state), reason, now, actor=request.actor, acknowledged_by=request.actor))
        return "acknowledged"

    def _stop(self, request: Request, snapshot: Snapshot, now: datetime) -> str:
        run = snapshot.run(request.target)
        if run is None or run.state != "started":
            return "the run is not in progress"
        action = asked_stop(
            STOP_RUN,
            run,
            request.intent,
            actor=request.actor,
            reason=request.reason,
            term=self.recovery.term,
            grace=self.settings.job.grace,
            now=now,
        )
        held = self.recovery.withheld(action, now)
        if action.action not in self.book.actions:
            self.book.write(replace(action, new_state="cancelled", reason=f"not issued: {held}", deadline=None) if held else action)
        return held or "issued"
