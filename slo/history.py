"""What the ledger is computed from: a run's history, as plain values. Times are microseconds since 1970."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.catalog.layers import Category, Phase

# Where the time of a phase goes. A phase that is not named here is the work itself.
CATEGORY_OF: dict[str, Category] = {
    Phase.INIT: Category.INIT,
    Phase.LOAD_CHECKPOINT: Category.LOAD_CHECKPOINT,
    Phase.COMPILE: Category.COMPILE,
    Phase.CHECKPOINT: Category.CHECKPOINT,
    Phase.EVAL: Category.EVAL,
    Phase.DATA: Category.DATA_WAIT,
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One launch. `end` is None while it is up; `exit_code` None while not known."""

    name: str
    start: int
    end: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """An incident that stopped a run. None where it has not come so far. `attempt` is the one that it ended."""

    incident: str
    attempt: str
    onset: int
    detected: int | None = None
    located: int | None = None
    acted: int | None = None
    recovered: int | None = None
    resolved: int | None = None
    next_attempt: str = ""


@dataclass(frozen=True, slots=True)
class FirstStep:
    """A rank's first completed step of an attempt."""

    step: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A run as a whole. `end` is that of the run, or now; `ranks` the largest world size seen.

    `attempts` are in order of their start. `firsts` and `exits` are by attempt and rank.
    """

    run: str
    start: int
    end: int
    ended: bool
    ranks: int
    attempts: tuple[Attempt, ...] = ()
    outages: tuple[Outage, ...] = ()
    firsts: Mapping[tuple[str, int], FirstStep] = field(default_factory=dict)
    exits: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A completed step. `phases` are microseconds by category, of the phases in it that are not the work itself."""

    step: int
    start: int
    end: int
    phases: Mapping[Category, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase outside any step."""

    start: int
    end: int
    category: Category


@dataclass(frozen=True, slots=True)
class RankRecords:
    """What one rank left in one attempt, in order.

    For a window of time: the steps that touch it, and the rank's last step before and first step after it.
    `signs` are the first and last time at which the agent saw the rank, `silences` the stretches between
    them without a sign for longer than `TELEMETRY_GAP`.
    """

    steps: tuple[StepSpan, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    signs: tuple[int, int] | None = None
    silences: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """A run's own healthy step: `mean` microseconds of work, and `limit`, beyond which a step counts as slow."""

    mean: int
    limit: int
