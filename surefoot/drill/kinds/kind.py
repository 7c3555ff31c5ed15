"""What a kind of drill is: which fault it brings about, how, and how that is taken back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.catalog.fault import Fault
from surefoot.drill.hosts import Host
from surefoot.drill.inject import Subject
from surefoot.drill.plan import STEPS, Pause, Plan, Truth
from surefoot.drill.stack import Stack


@dataclass(frozen=True, slots=True)
class Ground:
    """What the training stands on: a folder (its own, a mount, a control group), and words that are put before its command."""

    folder: Path
    prefix: Sequence[str] = ()
    told: str = ""  # what is special about it, for people


@dataclass(frozen=True, slots=True)
class Scene:
    """A training that is under way, to be hurt."""

    plan: Plan
    stack: Stack
    subject: Subject
    ground: Ground
    pause: Pause
    hosts: Sequence[Host] = ()  # of a training over several nodes


@contextmanager
def plain(out: Path) -> Iterator[Ground]:
    """Nothing special: the training's folder."""
    yield Ground(out)


def nothing() -> None:
    """Nothing has to be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of drill. What counts as right follows from `fault`: it is found under this name at the place of the truth, and its
    first action is carried out, or, where it has none, it is over after `remove`. A fault that `waits_for` something is not found yet.
    """

    name: str
    fault: Fault
    inject: Callable[[Scene], Truth]  # raises NotCarriedOut
    remove: Callable[[Scene], str] | None = None  # once the page is out; says what it did. None: nothing is left to be removed
    prepare: Callable[[], None] = nothing  # before anything is started; raises NotPossible
    ground: Callable[[Path], AbstractContextManager[Ground]] = plain
    steps: int = STEPS  # that the training takes, where nothing else is asked for: it is to outlast the fault
    nodes: int = 1  # that the training is spread over, where nothing else is asked for
    spares: int = 0  # further nodes that wait
    agent_interval: float | None = None  # seconds between the agent's readings, where they are what finds it; None: as set
