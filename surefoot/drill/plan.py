"""What a drill does, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import ActionMode
from pipeline.errors import SurefootError

STEPS = 110
Say = Callable[[str], object]
Pause = Callable[[float], object]
"""Sleeps so many seconds. May raise to end the drill: it is called only where nothing is half done."""


class NotCarriedOut(SurefootError):
    """The drill came to no result: its stack or its training did not get that far. Their logs say more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The fault to inject into rank `rank`, and the training around it. Times are seconds."""

    kind: str  # a name of kinds/registry.py
    rank: int = 1
    where: str = "outside"  # hang: outside or inside a collective
    mode: str = ActionMode.AUTO
    steps: int = STEPS
    step_time: float = 0.2
    checkpoint_every: int = 20
    inject_after: int = 45  # steps completed: the detectors know the run's pace by then, and two checkpoints are complete
    ranks: int = 2
    nodes: int = 1
    spares: int = 0
    also_kill: str | None = None
    keep: Path | None = None
    timeout: float = 120.0
    group_timeout: float = 0.0  # that a collective may take; 0: PyTorch's default


@dataclass(frozen=True, slots=True)
class Located:
    """Where a fault lies. `device` is a mount point, "" where it is not about one."""

    layer: str
    node: str
    rank: int | None
    device: str = ""

    def __str__(self) -> str:
        if self.device:
            return f"layer {self.layer}, node {self.node or 'unknown'}, {self.device}"
        return f"layer {self.layer}, node {self.node or 'unknown'}, rank {'unknown' if self.rank is None else self.rank}"


@dataclass(frozen=True, slots=True)
class Truth:
    """What was really done, and when. It is to be found as `fault`."""

    injected_at: datetime
    attempt: str  # "" where the fault is the node's own
    located: Located
    phase: str  # the phase in which the rank was hit, "" between phases
    fault: Fault
    what: str = ""  # for people

    @property
    def mended_by_action(self) -> bool:
        """Surefoot does something about it; else it is over when the drill has taken it away."""
        return self.fault.first_action is not None


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
    fault: str = ""  # what the incident says it is
    others: list[str] = field(default_factory=list)  # titles of further incidents about the same
    located: Located | None = None
    attempt: str = ""
    nodes: tuple[str, ...] = ()  # of several, those of the first attempt
    nodes_after: tuple[str, ...] = ()  # those of the last
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
    def left_out(self) -> list[str]:
        """The nodes that the run went on without."""
        return [node for node in self.nodes if node not in self.nodes_after]

    @property
    def taken_in(self) -> list[str]:
        """The nodes that took their places."""
        return [node for node in self.nodes_after if node not in self.nodes]

    @property
    def unseen(self) -> bool:
        """Nothing was found, and nothing could be: what would find it is still to come."""
        return bool(self.truth.fault.waits_for) and not self.incident

    @property
    def right(self) -> bool:
        """Nothing was wrong."""
        return not self.wrong and False not in self.correct.values()

    @property
    def exit_code(self) -> int:
        """0: all was right; 1: something was not; 3: nothing was wrong, but the fault cannot be found yet."""
        if self.unseen and not self.wrong:
            return 3
        return 0 if self.right else 1
