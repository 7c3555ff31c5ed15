"""A world for the leader: rows written as launchers and agents write them, a clock that we turn, and the real store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from alerts.outbox import Outbox
from alerts.receivers.registry import receivers
from alerts.tick import Tick
from pipeline.records import (
    ActionTransition,
    AttemptTransition,
    Beat,
    Event,
    FindingTransition,
    IncidentTransition,
    Live,
    NotificationTransition,
    Record,
    Request,
    RunTransition,
    Step,
)
from pipeline.settings import ReceiverSettings, Settings
from pipeline.store import Store

NODE = "node-a"


class Killed(Exception):
    """The leader died here."""


class Mortal:
    """The real store, in the hands of a leader that dies at its `nth` insert; counts them."""

    def __init__(self, store: Store, nth: int, *, after: bool = False) -> None:
        self._store, self.left, self._after = store, nth, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def insert(self, records: Sequence[Record], *, token: str) -> None:
        self._at(lambda: self._store.insert(records, token=token))

    def insert_rows(self, table: str, rows: Sequence[Any], *, token: str) -> None:
        self._at(lambda: self._store.insert_rows(table, rows, token=token))

    def _at(self, write: Callable[[], None]) -> None:
        self.left -= 1
        if self.left == 0 and not self._after:
            raise Killed
        write()
        if self.left == 0:
            raise Killed


@dataclass
class World:
    """One run with two ranks on one node. `now` is the wall clock of everybody, `mono` the leader's stopwatch."""

    Killed: ClassVar = Killed

    store: Any  # a Store
    settings: Settings
    now: datetime
    mono: float = 1000.0
    term: int = 1
    name: str = "r"
    leaders_store: Any = None  # what the leader is given; None: the same
    ticker: Tick | None = None
    _n: int = 0
    outboxes: list[Outbox] = field(default_factory=list)

    def put(self, *records: Record) -> None:
        for record in records:
            self._n += 1
            self.store.insert([record], token=f"world:{self.name}:{self._n}")

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.mono += seconds

    def mortal(self, nth: int, *, after: bool = False) -> Mortal:
        """The store for a leader that dies at its `nth` insert from now on: before it, or just after."""
        return Mortal(self.store, nth, after=after)

    def restart_jobs(self) -> None:
        """As after a kill -9: nothing remembered, a higher term."""
        self.ticker = None
        self.term += 1

    def tick(self) -> None:
        if self.ticker is None:
            for outbox in self.outboxes:
                outbox.close()
            self.outboxes = [Outbox(self.settings.state_dir / "outbox.sqlite")]
            told = receivers(self.settings.receivers)
            self.ticker = Tick(
                self.settings,
                self.leaders_store or self.store,
                self.outboxes[0],
                told,
                self.term,
                clock=lambda: self.now,
                stopwatch=lambda: self.mono,
            )
        self.ticker()

    # --- as a launcher writes ---

    def run(self, state: str = "started", exit_code: int | None = None) -> None:
        old = "" if state == "started" else "started"
        self.put(
            RunTransition(
                old_state=old, new_state=state, reason="", actor="launcher", at=self.now, run=self.name, node=NODE, exit_code=exit_code
            )
        )

    def attempt(self, state: str, launch: int = 1, exit_code: int | None = None, action: str = "") -> None:
        self.put(
            AttemptTransition(
                old_state="",
                new_state=state,
                reason="as written",
                actor="launcher",
                at=self.now,
                run=self.name,
                attempt=f"{self.name}-{launch}",
                launch=launch,
                node=NODE,
                ranks=2,
                exit_code=exit_code,
                action=action,
            )
        )

    def beat(self, state: str = "running", launch: int = 1, attempt: str | None = None) -> None:
        name = f"{self.name}-{launch}" if attempt is None else attempt
        self.put(
            Beat(component="launcher", at=self.now, node=NODE, run=self.name, attempt=name, state=state, launch=launch, ranks="0:alive:1")
        )

    def ingest(self) -> None:
        self.put(Beat(component="ingest", at=self.now, node=NODE))

    def exits(self, rank: int, code: str, launch: int = 1, **attrs: str) -> None:
        self._event("rank_exited", code, rank, f"{self.name}-{launch}", attrs)

    def answers(self, action: str, code: str) -> None:
        self._event("action_progress", code, None, "", {"action": action, "term": str(self.term)})

    def _event(self, kind: str, code: str, rank: int | None, attempt: str, attrs: Mapping[str, str]) -> None:
        self.put(
            Event(
                id=f"{self.name}:{self._n}",
                at=self.now,
                kind=kind,
                layer="framework",
                severity="info",
                node=NODE,
                run=self.name,
                attempt=attempt,
                rank=rank,
                code=code,
                attrs=dict(attrs),
            )
        )

    # --- as an agent writes ---

    def live(
        self, rank: int, *, step: int | None, completed: int | None, phase: str, since: datetime, launch: int = 1, state: str = "S"
    ) -> None:
        self.put(
            Live(
                run=self.name,
                attempt=f"{self.name}-{launch}",
                node=NODE,
                rank=rank,
                at=self.now,
                pid=100 + rank,
                step=step,
                completed=completed,
                phase=phase,
                since=since,
                process_state=state,
            )
        )

    def steps(self, count: int, first: int = 1, launch: int = 1, seconds: float = 0.2) -> None:
        """Both ranks' completed steps, the last of which ends now."""
        rows = [
            Step(
                run=self.name,
                attempt=f"{self.name}-{launch}",
                node=NODE,
                rank=rank,
                step=first + n,
                started_at=self.now - timedelta(seconds=seconds * (count - n)),
                ended_at=self.now - timedelta(seconds=seconds * (count - n - 1)),
            )
            for n in range(count)
            for rank in (0, 1)
        ]
        self._n += 1
        self.store.insert(rows, token=f"world:{self.name}:{self._n}")

    def asks(self, intent: str, kind: str, target: str, actor: str = "ann") -> None:
        self.put(Request(intent=intent, at=self.now, kind=kind, target=target, actor=actor))

    # --- what came of it ---

    def incidents(self) -> list[IncidentTransition]:
        return self.store.read(IncidentTransition, "SELECT * FROM incidents WHERE run = {run:String} ORDER BY at", {"run": self.name})

    def findings(self) -> list[FindingTransition]:
        return self.store.read(FindingTransition, "SELECT * FROM findings WHERE run = {run:String} ORDER BY at", {"run": self.name})

    def actions(self) -> list[ActionTransition]:
        return self.store.read(ActionTransition, "SELECT * FROM actions WHERE run = {run:String} ORDER BY at", {"run": self.name})

    def notifications(self) -> list[NotificationTransition]:
        mine = [i.incident for i in self.incidents()]
        return self.store.read(
            NotificationTransition, "SELECT * FROM notifications WHERE incident IN {mine:Array(String)} ORDER BY at", {"mine": mine}
        )

    def attempts(self) -> list[AttemptTransition]:
        return self.store.read(AttemptTransition, "SELECT * FROM attempts WHERE run = {run:String} ORDER BY at", {"run": self.name})


def settings_for(settings: Settings, **changes: Any) -> Settings:
    """`settings` with a pager and a log as receivers, and `changes`."""
    told = (
        ReceiverSettings(kind="pagerduty", name="pager", key="k" * 32, url="http://127.0.0.1:9/"),
        ReceiverSettings(kind="log", name="log"),
    )
    return settings.model_copy(update={"receivers": told, **changes})


@pytest.fixture
def new_world(store: Store, store_settings: Settings) -> Iterator[Callable[..., World]]:
    """Makes worlds: each a run of its own name, with a state folder of its own, all on this test's database."""
    made: list[World] = []

    def make(name: str = "r") -> World:
        settings = settings_for(store_settings, state_dir=store_settings.state_dir / name)
        now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
        made.append(World(store, settings, now, name=name))
        return made[-1]

    yield make
    for each in made:
        for outbox in each.outboxes:
            outbox.close()


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    """One world."""
    return new_world()
