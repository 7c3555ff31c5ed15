"""What the launcher writes of its run: transitions of the run and its attempts, events of ranks, evidence, log lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from exporters.job import hidden
from exporters.job.capture import Evidence
from exporters.job.control import Request
from exporters.job.exits import describe, signal_name
from exporters.job.ranks import Rank
from exporters.job.tee import Printed
from exporters.sending.sender import Sender
from exporters.sending.wire import LogLine
from pipeline.catalog import events
from pipeline.catalog.events import EventKind
from pipeline.clock import EPOCH, Clock, utcnow
from pipeline.records import AttemptFacts, AttemptTransition, Event, Record, RunTransition

_EVENT: Final = "surefoot.event"
_TRANSITION: Final = "surefoot.transition"
_FACTS: Final = "surefoot.facts"
_TICK: Final = timedelta(microseconds=1)
_AHEAD: Final = timedelta(seconds=60)  # ingest keeps no row from further ahead: nothing need be later than that


@dataclass(slots=True)
class Journal:
    """Writes for one run of one launcher on `node`. Remembers the last state of the run and of each attempt."""

    sender: Sender
    run: str
    node: str
    command: Sequence[str]
    checkpoints: str = ""
    clock: Clock = utcnow
    speaks: bool | None = True
    """For its run and attempt: of several launchers one does, the others tell of their node alone. None: not decided, it is kept."""
    _run_state: str = ""
    _states: dict[str, str] = field(default_factory=dict)
    _last: datetime = EPOCH
    _kept: list[Record] = field(default_factory=list)

    @property
    def told(self) -> int:
        """The number of the last thing that was written."""
        return self.sender.queued

    @property
    def delivered(self) -> int:
        """All that was written up to this number has left, one way or another."""
        return self.sender.settled

    def speak(self, may: bool) -> None:
        """Decides whether it speaks, and says what was kept, or forgets it."""
        self.speaks = may
        kept, self._kept = self._kept, []
        for record in kept if may else ():
            self._transition(record)

    def run_is(self, state: str, reason: str, *, exit_code: int | None = None, ranks: int = 0) -> None:
        """The run is now in a state of `RunTransition.states`."""
        if self.speaks is False or state == self._run_state:
            return
        self._transition(
            RunTransition(
                run=self.run,
                node=self.node,
                command=hidden.told(self.command),
                ranks=ranks,
                checkpoints=self.checkpoints,
                exit_code=exit_code,
                old_state=self._run_state,
                new_state=state,
                reason=reason,
                actor=self._actor,
                at=self._now(),
            )
        )
        self._run_state = state

    def attempt_issued(self, attempt: str) -> None:
        """The control plane wrote that `attempt` is issued; what we write comes after that."""
        self._states.setdefault(attempt, "issued")

    def attempt_is(
        self,
        attempt: str,
        launch: int,
        state: str,
        reason: str,
        *,
        ranks: int = 0,
        resume_from: str = "",
        exit_code: int | None = None,
        action: str = "",
        nodes: Sequence[str] = (),
        master: str = "",
    ) -> None:
        """The attempt is now issued (minted here), starting, running, stopping or ended."""
        if self.speaks is False:
            return
        self._transition(
            AttemptTransition(
                run=self.run,
                attempt=attempt,
                launch=launch,
                node=self.node,
                ranks=ranks,
                resume_from=resume_from,
                exit_code=exit_code,
                action=action,
                nodes=",".join(nodes),
                master=master,
                old_state=self._states.get(attempt, ""),
                new_state=state,
                reason=reason,
                actor=self._actor,
                at=self._now(),
            )
        )
        self._states[attempt] = state

    def command_exited(self, attempt: str, code: int, reason: str, *, stopped: bool) -> None:
        """The command ended on this node, one of several."""
        attrs = {"stopped_by": "launcher"} if stopped else {}
        self._event(events.COMMAND_EXITED, attempt, code=str(code), message=f"the command {describe(code)}: {reason}", attrs=attrs)

    def rank_started(self, attempt: str, rank: Rank) -> None:
        """A rank's process was seen for the first time."""
        self._event(
            events.RANK_STARTED,
            attempt,
            rank=rank.place.rank,
            message=f"rank {rank.place.rank} started",
            attrs=_identity(rank),
            at=rank.seen_at,
        )

    def rank_exited(self, attempt: str, rank: Rank) -> None:
        """A rank's process ended (its `exit` is set)."""
        if not (end := rank.exit):
            return
        attrs = _identity(rank) | {"signal": signal_name(end.code), "stopped_by": end.stopped_by, "error": end.error}
        self._event(
            events.RANK_EXITED,
            attempt,
            rank=rank.place.rank,
            code="" if end.code is None else str(end.code),
            message=f"rank {rank.place.rank} {describe(end.code)}" + (f", stopped by {end.stopped_by}" if end.stopped_by else ""),
            duration=max(0.0, (end.at - rank.seen_at).total_seconds()),
            attrs={k: v for k, v in attrs.items() if v},
            at=end.at,
        )

    def captured(self, attempt: str, evidence: Evidence) -> None:
        """Evidence was taken from a rank."""
        attrs = {"pid": str(evidence.pid), "path": evidence.path, "text": evidence.text}
        self._event(
            events.CAPTURE,
            attempt,
            rank=evidence.rank,
            code=evidence.kind,
            message=evidence.note or f"{evidence.kind} of rank {evidence.rank}",
            attrs={k: v for k, v in attrs.items() if v},
        )

    def ran_with(self, attempt: str, facts: Mapping[str, str]) -> None:
        """What the attempt runs with on this node."""
        self.sender.send_records([(_FACTS, AttemptFacts(run=self.run, attempt=attempt, node=self.node, at=utcnow(), facts=dict(facts)))])

    def progress(self, attempt: str, request: Request, code: str, message: str) -> None:
        """The answer to a request: accepted, done, failed or refused."""
        self._event(events.ACTION_PROGRESS, attempt, code=code, message=message, attrs={"action": request.id, "term": str(request.term)})

    def printed(self, attempt: str, printed: Sequence[Printed], offset: int | None) -> None:
        """Lines that the command printed; `offset` is what a local rank lacks to the rank."""
        common = {"run": self.run, "attempt": attempt}
        self.sender.send_logs([LogLine(p.at, p.piece.text, common | _who(p, offset)) for p in printed])

    @property
    def _actor(self) -> str:
        return f"launcher:{self.node}"

    def _event(
        self,
        kind: EventKind,
        attempt: str,
        *,
        rank: int | None = None,
        code: str = "",
        message: str = "",
        duration: float | None = None,
        attrs: dict[str, str],
        at: datetime | None = None,
    ) -> None:
        event = Event(
            id=uuid4().hex,
            at=at or utcnow(),
            kind=kind.name,
            layer=kind.layer.value,
            severity=kind.severity.value,
            node=self.node,
            run=self.run,
            attempt=attempt,
            rank=rank,
            code=code,
            message=message,
            duration=duration,
            attrs=attrs,
        )
        self.sender.send_records([(_EVENT, event)])

    def _transition(self, record: Record) -> None:
        if self.speaks is None:
            self._kept.append(record)
            return
        self.sender.send_records([(_TRANSITION, record)])

    def _now(self) -> datetime:
        """The time, but later than the last transition: the state is the last one by `at`, also when the clock was set back.

        Not after a clock that ran far ahead and was put right: transitions that stayed there would all be refused.
        """
        now = self.clock()
        self._last = max(now, self._last + _TICK) if self._last - now <= _AHEAD else now
        return self._last


def _identity(rank: Rank) -> dict[str, str]:
    local = rank.place.local_rank
    return {"pid": str(rank.place.pid)} | ({} if local is None else {"local_rank": str(local)})


def _who(printed: Printed, offset: int | None) -> dict[str, str | int]:
    rank = printed.piece.global_rank(offset)
    return {"stream": printed.stream} | ({} if rank is None else {"rank": rank})
