"""What shows an explicit fault: the condition, how long it must hold, and when it is over. The rows stand in `rules/`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pipeline.catalog.events import EventKind
from pipeline.catalog.fault import Fault
from pipeline.catalog.metrics import BY_NAME, HOST, Family, Metric


class View(StrEnum):
    """What of a metric is compared."""

    LEVEL = "level"  # the value, or its ratio to another metric
    INCREASE = "increase"  # since the reading before; of a counter that began anew, its value
    RATE = "rate"  # the increase a second; not over a gap
    RESET = "reset"  # 1 where it is less than at the reading before, else 0


class Scope(StrEnum):
    """Where a rule applies."""

    ANYWHERE = "anywhere"
    RUN = "run"  # on a node of a run in progress
    CHECKPOINTS = "checkpoints"  # on the mount that the checkpoints of a run in progress lie on: the run is hit


RANK: Final = "rank"  # the label that names a rank, in an event


@dataclass(frozen=True, slots=True)
class Hold:
    """How long: `readings` in a row, spanning `seconds` in which readings came (a gap counts for nothing)."""

    readings: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition on a metric: bad from `bad` on, good again from `good` on, upwards or downwards as the two lie.

    Where both are equal, what is not bad is good. `of` makes it a ratio.
    """

    metric: Metric
    bad: float
    good: float
    above: bool = True  # whether bad lies above good
    of: Metric | None = None
    view: View = View.LEVEL

    def says(self, value: float) -> bool | None:
        """True: bad; False: good; None: between the two limits."""
        bad, good = (self.bad, self.good) if self.above else (-self.bad, -self.good)
        value = value if self.above else -value
        if value >= bad:
            return True
        return False if value <= good or bad == good else None


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of `kind` (with `code`, or one of `codes`, where such are given), `times` of them `within` seconds."""

    kind: EventKind
    code: str = ""
    times: int = 1
    within: float = 0.0
    codes: frozenset[str] = frozenset()

    def fits(self, kind: str, code: str) -> bool:
        """Whether an event is one of those."""
        return kind == self.kind.name and (not self.code or code == self.code) and (not self.codes or code in self.codes)


@dataclass(frozen=True, slots=True)
class Missing:
    """A device of `family` is no longer there, while its node goes on telling of the others."""

    family: Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row. Of several limits all must be bad; one that is good is enough for good.

    `entity` is the label that names what is hit, "" where that is the node; of a rank the run is hit, too. `says` and `cleared`
    are words for people, filled from the readings: {mount_free} is `mount.free`, {value} the first limit's, {place} the entity,
    {held} for how long, {growth} how fast.
    """

    fault: Fault
    when: tuple[Limit, ...] | Happened | Missing
    says: str
    cleared: str
    hold: Hold = Hold()
    clear: Hold = Hold()
    entity: str = ""
    scope: Scope = Scope.ANYWHERE
    turned: bool = False  # only where it was seen good before: what has been so for ever is no fault
    never: Mapping[str, str] = field(default_factory=dict)  # label -> pattern of those that the rule leaves alone

    @property
    def names_run(self) -> bool:
        """Whether what it finds is a run's, not the node's own."""
        return self.scope is Scope.CHECKPOINTS or self.entity == RANK

    @property
    def family(self) -> Family:
        """Whose readings it looks at; of an event the node's own, by which its agent is heard."""
        if isinstance(self.when, Missing):
            return self.when.family
        return BY_NAME[self.when[0].metric.name][0] if isinstance(self.when, tuple) else HOST


def metric(name: str) -> Metric:
    """The metric of that name."""
    return BY_NAME[name][1]
