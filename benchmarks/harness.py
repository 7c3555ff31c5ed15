"""What every bench shares: interleaved pairs, the median ratio, and a verdict that says when the noise is larger than the answer."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

Verdict = Literal["met", "missed", "not-resolved", "skipped"]


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit on the ratio ours/peer: at most `limit`, or at least."""

    limit: float
    way: Literal["<=", ">="]

    def __str__(self) -> str:
        return f"{self.way}{self.limit:g}"

    def holds(self, ratio: float) -> bool:
        """Is the goal reached at `ratio`?"""
        return ratio <= self.limit if self.way == "<=" else ratio >= self.limit


@dataclass(frozen=True, slots=True)
class Result:
    """One line. `low` and `high` bound the median ratio (about 95 %)."""

    name: str
    what: str  # ours against what, for the table
    verdict: Verdict
    goal: str = ""
    ours: str = ""
    peer: str = ""
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    why: str = ""

    @classmethod
    def skip(cls, name: str, why: str) -> Self:
        """A bench that cannot run here."""
        return cls(name, "", "skipped", why=why)

    @property
    def line(self) -> str:
        """As it is printed."""
        if self.verdict == "skipped":
            return f"bench {self.name} skipped: {self.why}"
        measured = f"bench {self.name} ours={self.ours} peer={self.peer} ratio={self.ratio:.3g} goal={self.goal} {self.verdict}"
        return f"{measured} [{self.low:.3g}, {self.high:.3g}]" if self.verdict == "not-resolved" else measured


def compare(
    name: str, what: str, ours: Callable[[], float], peer: Callable[[], float], goal: Goal, show: Callable[[float], str], repeats: int = 11
) -> Result:
    """Measure `ours` and `peer` in turns, the first of a pair changing, after one pair that does not count.

    Each gives one figure, which `show` renders with its unit.
    """
    ours(), peer()
    mine: list[float] = []
    theirs: list[float] = []
    for turn in range(repeats):
        for measure, figures in [(ours, mine), (peer, theirs)][:: 1 if turn % 2 else -1]:
            figures.append(measure())
    ratios = [m / t for m, t in zip(mine, theirs, strict=True)]
    low, high = median_bounds(ratios)
    ratio = statistics.median(ratios)
    told = (show(statistics.median(mine)), show(statistics.median(theirs)))
    return Result(name, what, verdict(ratio, low, high, goal), str(goal), *told, ratio, low, high)


def verdict(ratio: float, low: float, high: float, goal: Goal) -> Verdict:
    """Met or missed; not resolved where the spread is wider than the distance to the goal."""
    if high - low > abs(ratio - goal.limit):
        return "not-resolved"
    return "met" if goal.holds(ratio) else "missed"


def median_bounds(figures: list[float]) -> tuple[float, float]:
    """Two of the figures between which the true median lies with about 95 %, by the binomial; all of them below 6."""
    ordered = sorted(figures)
    n = len(ordered)
    cut, tail = 0, 0.5**n  # chance that the median lies below the smallest: 2^-n
    term = tail
    while cut + 1 < n // 2:
        term *= (n - cut) / (cut + 1)
        if 2 * (tail + term) > 0.05:
            break
        tail += term
        cut += 1
    return ordered[cut], ordered[n - 1 - cut]
