"""What a drill does, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pipeline.catalog import faults
from pipeline.catalog.layers import ActionMode
from pipeline.errors import SurefootError

Say = Callable[[str], object]
Pause = Callable[[float], object]
"""Sleeps so many seconds. May raise to end the drill: it is called only where nothing is half done."""

FAULT_OF = {"kill": faults.RANK_CRASH, "hang": faults.RANK_STOPPED}


class NotCarriedOut(SurefootError):
    """The drill came to no result: its stack or its training did not get that far. Their logs say more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The fault to inject into rank `rank`, and the training around it. Times are seconds."""

    kind: str  # kill: SIGKILL; hang: SIGSTOP
    rank: int = 1
    where: str = "outside"  # hang: outside or inside a collective
    mode: str = ActionMode.AUTO
    steps: int = 110
    step_time: float = 0.2
    checkpoint_every: int = 20
    inject_after: int = 45  # steps completed: the detectors know the run's pace by then, and two checkpoints are complete
    ranks: int = 2
    also_kill: str | None = None
    keep: Path | None = None
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class Located:
    """Where a fault lies."""

    layer: str
    node: str
    rank: int | None

    def __str__(self) -> str:
        return f"layer {self.layer}, node {self.node or 'unknown'}, rank {'unknown' if self.rank is None else self.rank}"


@dataclass(frozen=True, slots=True)
class Truth:
    """What was really done, and when."""

    injected_at: datetime
    attempt: str
    located: Located
    phase: str  # the phase in which the rank was hit, "" between phases


@dataclass(frozen=True, slots=True)
class End:
    """How a drill came to its end."""

    resolved: bool  # the incident was
    finished: bool  # the training did, with exit code 0
    gave_up: bool  # the training was stopped, since the fault was not mended in time


@dataclass(slots=True)
class Result:
    """A drill's outcome. Durations are seconds from the injection; None is "did not happen"."""

    plan: Plan
    run: str
    truth: Truth
    incident: str = ""
    link: str = ""
    located: Located | None = None
    attempt: str = ""
    action: str = ""
    unapproved: bool = False  # a restart waited for a person to the end
    seconds: dict[str, float | None] = field(default_factory=dict)
    cold_start: float | None = None
    goodput: float | None = None
    ledger: dict[str, float] = field(default_factory=dict)  # GPU-seconds by category
    loss: str = ""
    pages: list[str] = field(default_factory=list)  # "trigger KEY", in the order in which they came
    correct: dict[str, bool | None] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # what was not right, in words
    losses: Path | None = None

    @property
    def right(self) -> bool:
        """Nothing was wrong."""
        return not self.wrong and False not in self.correct.values()
