"""What one tick sees. Plain data: detectors, diagnosis and policy are functions of it and of `now`.

Ages are seconds by the reader's monotonic clock (`alerts/ages.py`); None means that it is not known.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from alerts.watched import Watched
from pipeline.catalog.runs import GONE, READY, ended_well, meant
from pipeline.settings import DetectSettings

FRESH = 2.5  # seconds: a rank whose last look is older than this is not judged
HEARD = 4 * FRESH  # seconds: a launcher that was silent for longer does not wait any more
_NO_MORE = frozenset("XZ")  # process states of a rank
STOPPED = frozenset("Tt")  # stopped by a signal, or by a debugger


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLook:
    """A rank's last live row. `attempt` is the launcher's attempt, also where torchrun restarted inside it."""

    run: str
    attempt: str
    node: str
    rank: int
    step: int | None
    completed: int | None
    phase: str
    collective: str
    process_state: str
    at: datetime
    still: float | None  # since it last began or ended a step or phase, as far as we can tell now
    still_at_look: float | None  # the same as the agent saw it, at `at`: no transport delay in it
    seen_age: float  # since its last row changed
    state_age: float  # since `process_state` became what it is

    @property
    def fresh(self) -> bool:
        """Whether this is its present."""
        return self.seen_age <= FRESH

    @property
    def gone(self) -> bool:
        """Whether its process is no more."""
        return self.process_state in _NO_MORE

    @property
    def in_step(self) -> bool:
        """Whether it was in the middle of a step or phase."""
        return self.phase != "" or self.step != self.completed


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExit:
    """A rank's process ended. `code` is "" where its status could not be learnt, "-9" for SIGKILL."""

    run: str
    attempt: str
    node: str
    rank: int | None
    at: datetime
    code: str
    signal: str = ""
    stopped_by: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a launcher said about a request: accepted, done, failed or refused."""

    action: str
    code: str
    at: datetime
    node: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherLook:
    """A launcher's last sign of life; `pipeline.records.Beat` tells of its fields."""

    run: str
    node: str
    attempt: str
    state: str
    launch: int
    ranks: str
    at: datetime
    age: float
    nodes: str = ""
    address: str = ""
    waited: float = 0.0
    resume: str = ""

    @property
    def heard(self) -> bool:
        """Whether it still asks."""
        return self.age <= HEARD and self.state != GONE

    def well(self, attempt: "AttemptLook | None") -> bool:
        """Whether it said last that the command of `attempt` ended well on its node, which has nothing more to do then."""
        return attempt is not None and self.attempt == attempt.attempt and ended_well(self.state, self.ranks)

    def meant_by(self, attempt: "AttemptLook") -> bool:
        """Whether it asks and was named by `attempt`, which it has not said yet that it began."""
        asking_since = self.at - timedelta(seconds=self.waited)
        return attempt.issued_at is not None and meant(self.node, asking_since, attempt.nodes, attempt.issued_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLook:
    """An attempt and the times of its states; the state is the furthest it has reached."""

    run: str
    attempt: str
    launch: int
    state: str
    issued_at: datetime | None = None
    starting_at: datetime | None = None
    running_at: datetime | None = None
    stopping_at: datetime | None = None
    ended_at: datetime | None = None
    node: str = ""
    ranks: int = 0
    exit_code: int | None = None
    reason: str = ""
    action: str = ""
    nodes: tuple[str, ...] = ()  # of several, by node rank

    @property
    def members(self) -> tuple[str, ...]:
        """The nodes that it runs on; the first one's launcher speaks for it."""
        return self.nodes or ((self.node,) if self.node else ())

    @property
    def began_at(self) -> datetime | None:
        """When its command was started."""
        return self.starting_at or self.running_at or self.issued_at

    @property
    def failed(self) -> bool:
        """Its command ended with anything but success, and not because it was asked to. Without a status it is only known to be over."""
        return self.state == "ended" and self.exit_code not in (None, 0) and self.stopping_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLook:
    """A run and its attempts by launch. `abandoned`: no sign of life for so long that nothing new is said about it."""

    run: str
    node: str
    state: str
    started_at: datetime
    changed_at: datetime
    exit_code: int | None
    reason: str
    attempts: tuple[AttemptLook, ...] = ()
    abandoned: bool = False
    checkpoints: str = ""

    @property
    def current(self) -> AttemptLook | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def members(self) -> tuple[str, ...]:
        """The nodes that it runs on now: of several those of the newest attempt."""
        return (self.current.nodes if self.current else ()) or (self.node,)

    def attempt(self, name: str) -> AttemptLook | None:
        """The attempt called `name`."""
        return next((a for a in self.attempts if a.attempt == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Step times of a run (seconds), each attempt's first step and the long phases left out; `longest` has all in it."""

    steps: int
    median: float | None
    p99: float | None
    longest: float | None
    phases: Mapping[str, float] = field(default_factory=dict)  # the longest that each phase ever took


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a tick decides from."""

    now: datetime
    detect: DetectSettings
    runs: tuple[RunLook, ...] = ()
    ranks: tuple[RankLook, ...] = ()
    stepped_attempts: frozenset[str] = frozenset()  # of those that ended or lost a rank: the ones with a completed step on record
    exits: tuple[RankExit, ...] = ()
    answers: tuple[Answer, ...] = ()
    launchers: tuple[LauncherLook, ...] = ()
    agents: Mapping[str, float] = field(default_factory=dict)  # node -> seconds since its agent's last readings
    pace: Mapping[str, Pace] = field(default_factory=dict)
    ingest_steady: float | None = None  # seconds for which ingest has been hearing without a break; None: not known
    agent_interval: float = 10.0
    watched: Watched = field(default_factory=Watched)

    def active(self) -> Iterator[tuple[RunLook, AttemptLook]]:
        """The runs in progress with their newest attempt."""
        for run in self.runs:
            if run.state == "started" and not run.abandoned and run.current:
                yield run, run.current

    def run(self, name: str) -> RunLook | None:
        """The run called `name`."""
        return next((r for r in self.runs if r.run == name), None)

    def launchers_of(self, run: str) -> list[LauncherLook]:
        """The launchers of a run that are heard, by node."""
        return sorted((one for one in self.launchers if one.run == run and one.heard), key=lambda one: one.node)

    def all_well(self, run: RunLook) -> bool:
        """Whether the command of a run's newest attempt on several nodes is known to have ended well on each of them."""
        current = run.current
        return current is not None and current.nodes != () and all(self._well_on(run.run, current, node) for node in current.nodes)

    def _well_on(self, run: str, current: AttemptLook, node: str) -> bool:
        last = next((one for one in self.launchers if one.run == run and one.node == node), None)
        if last and last.attempt == current.attempt:
            return last.well(current)
        return (last is None or last.state != READY) and self.ended_well(current, node)

    def ended_well(self, attempt: AttemptLook, node: str) -> bool:
        """Whether the command of an attempt on several nodes ended well on one of them, by what was written of it at the time."""
        if node == attempt.members[0]:
            return attempt.state == "ended" and attempt.exit_code == 0
        return any(e.node == node and e.rank is None and e.code == "0" and not e.stopped_by for e in self.exits_of(attempt.attempt))

    def ranks_of(self, attempt: str) -> list[RankLook]:
        """The ranks of an attempt, by rank."""
        return sorted((r for r in self.ranks if r.attempt == attempt), key=lambda r: r.rank)

    def exits_of(self, attempt: str) -> list[RankExit]:
        """The exits of an attempt's ranks, oldest first."""
        return sorted((e for e in self.exits if e.attempt == attempt), key=lambda e: e.at)

    def stepped(self, attempt: str) -> bool:
        """Whether any rank of the attempt has completed a step."""
        return attempt in self.stepped_attempts or any(r.completed is not None for r in self.ranks_of(attempt))
