"""What the rules have seen: for each rule and place, how long it has been bad or good. Pure.

No data is no judgement: a reading without the value changes nothing, and the time of a gap counts neither towards opening nor
towards clearing, though what came before it stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from alerts.growth import STALE as STALE
from alerts.growth import Growth, increase
from pipeline.catalog.rules import Hold, Limit, Missing, Rule, View

GONE = 3  # passes over its node's other devices without it, after which a device is no longer there
KEPT = 6  # observations that a finding's evidence shows

Values = Mapping[str, float | None]
Before = Mapping[str, tuple[datetime, float]]
Observation = tuple[datetime, Mapping[str, float | str]]
NOTHING: Mapping[str, Growth] = {}


class Said(Enum):
    """What one reading says about a rule."""

    BAD = "bad"
    GOOD = "good"
    BETWEEN = "between"  # neither: it interrupts both
    UNKNOWN = "unknown"  # no data


@dataclass(slots=True)
class Streak:
    """Readings in a row that said the same. `seconds` is the time that they cover without gaps."""

    since: datetime | None = None
    last: datetime | None = None
    readings: int = 0
    seconds: float = 0.0

    def extend(self, at: datetime, gap: float) -> None:
        """One more, at `at`; more than `gap` seconds after the one before, the time between is nobody's."""
        apart = (at - self.last).total_seconds() if self.last else 0.0
        self.seconds += apart if 0 < apart <= gap else 0.0
        self.since = self.since or at
        self.last = at if self.last is None else max(at, self.last)
        self.readings += 1

    def reaches(self, hold: Hold) -> bool:
        """Whether it has lasted for `hold`."""
        return self.readings >= max(1, hold.readings) and self.seconds >= hold.seconds


@dataclass(frozen=True, slots=True)
class Place:
    """What is hit: a node, or something on it. `labels` are all that is known about it."""

    node: str
    entity: str = ""
    value: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """Its name in a finding's key."""
        return f"node:{self.node}/{self.entity}:{self.value}" if self.entity else f"node:{self.node}"


@dataclass(slots=True)
class Standing:
    """How a rule stands at a place: raised once it was bad for its hold, until it was good for its clear. `seen_at` is the last
    reading of its device, whatever it held."""

    rule: Rule
    place: Place
    seen_at: datetime
    bad: Streak = field(default_factory=Streak)
    good: Streak = field(default_factory=Streak)
    known: bool = False
    was_good: bool = False
    raised: bool = False
    onset: datetime | None = None  # of what raised it
    last: Observation | None = None  # the last that was known
    before: Observation | None = None  # the last before it became bad
    seen: list[Observation] = field(default_factory=list)  # bad ones: the first and the newest

    def observe(self, at: datetime, said: Said, values: Mapping[str, float | str], gap: float) -> None:
        """One reading, at `at`. `gap` as in `Streak.extend`."""
        if said is Said.UNKNOWN or (said is Said.BAD and self.rule.turned and not self.was_good):
            return
        self.known = True
        if said is Said.BAD:
            self._bad(at, values, gap)
        else:
            self.bad = Streak()
            self.good = self.good if said is Said.GOOD else Streak()
        if said is Said.GOOD:
            self.was_good = True
            self.good.extend(at, gap)
            self.raised = self.raised and not self.good.reaches(self.rule.clear)
        self.last = (at, values)

    def _bad(self, at: datetime, values: Mapping[str, float | str], gap: float) -> None:
        if not self.bad.readings and not self.raised:
            self.before, self.seen = self.last, []
        self.good = Streak()
        self.bad.extend(at, gap)
        self.seen = [*self.seen[:1], *self.seen[1:][-(KEPT - 2) :], (at, values)]
        if not self.raised and self.bad.reaches(self.rule.hold):
            self.raised, self.onset = True, self.bad.since

    @property
    def over(self) -> bool:
        """Whether it is known to be well: not raised, and good for long enough."""
        return not self.raised and self.good.reaches(self.rule.clear)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Everything that the rules have seen. `passes` are the last times of a family's readings of a node, or of its collector's word that
    there is nothing of it; `mounts` the mount points of a node, with those that were there until lately; `collectors` those of its agent,
    each named like the family that it reads."""

    raised: Sequence[Standing] = ()
    standings: Mapping[tuple[str, str], Sequence[Standing]] = field(default_factory=dict)  # by fault and the place's key
    passes: Mapping[tuple[str, str], Sequence[datetime]] = field(default_factory=dict)  # by family and node
    mounts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    collectors: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def gone(self, standing: Standing) -> bool:
        """Whether its device is no longer there, while its node goes on telling of the others."""
        return missed(self.passes.get((standing.rule.family.name, standing.place.node), ()), standing.seen_at) >= GONE

    def told(self, family: str, node: str) -> bool:
        """Whether a node has been telling of a family for long enough that what is not among it is not there."""
        return len(self.passes.get((family, node), ())) >= GONE


def missed(passes: Sequence[datetime], seen_at: datetime) -> int:
    """How many passes came after `seen_at`."""
    return sum(at > seen_at for at in passes)


def judge(
    rule: Rule, now: tuple[datetime, Values], before: Before, gap: float, grown: Mapping[str, Growth] = NOTHING
) -> tuple[Said, float | None]:
    """What a reading says about a rule of limits, and the value of its first limit. `before` holds each metric's last known value,
    `grown` how the counters grew up to this reading that a limit looks at over a while."""
    if not isinstance(rule.when, tuple):
        return (Said.GOOD if isinstance(rule.when, Missing) else Said.UNKNOWN), None
    found = [(limit, value_of(limit, now, before, gap, grown)) for limit in rule.when]
    says = [Said.UNKNOWN if value is None else _SAYS[limit.says(value)] for limit, value in found]
    if all(said is Said.BAD for said in says):
        told = Said.BAD
    else:
        told = next((said for said in (Said.GOOD, Said.UNKNOWN) if said in says), Said.BETWEEN)
    return told, found[0][1]


_SAYS = {True: Said.BAD, False: Said.GOOD, None: Said.BETWEEN}


def value_of(limit: Limit, now: tuple[datetime, Values], before: Before, gap: float, grown: Mapping[str, Growth] = NOTHING) -> float | None:
    """What a limit compares, None where it is not known."""
    at, values = now
    value = values.get(limit.metric.name)
    if value is None:
        return None
    if limit.view is View.LEVEL:
        of = values.get(limit.of.name) if limit.of else 1.0
        return value / of if of else None
    if limit.within:
        growth = grown.get(limit.metric.name)
        return growth.over(limit.within) if growth else None
    earlier = before.get(limit.metric.name)
    if earlier is None:
        return None
    if limit.view is View.RESET:
        return 1.0 if value < earlier[1] else 0.0
    apart = (at - earlier[0]).total_seconds()
    rise = increase(limit.metric, earlier[1], value)
    if rise is None:
        return None
    if limit.view is View.INCREASE:
        return rise if apart <= STALE else None
    if not 0 < apart <= gap:
        return None
    return _share(rise, limit, earlier[0], values, before) if limit.view is View.SHARE else rise / apart


def _share(rise: float, limit: Limit, since: datetime, values: Values, before: Before) -> float | None:
    """An increase as a share of another one in the same time; of nothing there is no share, but for none of it."""
    value, earlier = (values.get(limit.of.name), before.get(limit.of.name)) if limit.of else (None, None)
    whole = increase(limit.of, earlier[1], value) if limit.of and value is not None and earlier and earlier[0] == since else None
    if whole:
        return rise / whole
    return 0.0 if whole == rise == 0 else None
