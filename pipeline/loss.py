"""What was lost, in one sentence, and what could be: the same words and sums in the console, the drills and the report."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pipeline.catalog.layers import Category

_HOURS_FROM = 10_000  # GPU-seconds from which the sentence speaks of GPU-hours


def loss_sentence(cost: Mapping[Category, int]) -> str:
    """What GPU-microseconds by category come to, in one sentence whose parts add up to its total.

    >>> loss_sentence({Category.DETECT: 3_000_000, Category.RESTART: 9_000_000, Category.LOST_PROGRESS: 29_000_000})
    'lost 41 GPU-s: 3 detect, 9 restart, 29 lost progress'
    """
    total = sum(cost.values())
    hours = total >= _HOURS_FROM * 1_000_000
    unit = 360_000_000 if hours else 1_000_000  # a tenth of an hour, or a second
    if total * 2 < unit:
        return "lost less than 1 GPU-s" if total else "lost nothing"
    whole = (total * 2 + unit) // (2 * unit)
    shares = _largest_remainder([cost[c] for c in cost], whole)
    parts = [f"{_number(n, hours=hours)} {category.value.replace('_', ' ')}" for category, n in zip(cost, shares, strict=True) if n]
    return f"lost {_number(whole, hours=hours)} GPU-{'h' if hours else 's'}: {', '.join(parts)}"


def work_at_risk(ranks: int, started_at: datetime, checkpoint_at: datetime | None, now: datetime) -> float:
    """GPU-seconds that would be lost if the run died now: since its last complete checkpoint, or since its start."""
    return ranks * max(0.0, (now - (checkpoint_at or started_at)).total_seconds())


def _number(units: int, *, hours: bool) -> str:
    return f"{units // 10}.{units % 10}" if hours else str(units)


def _largest_remainder(values: Sequence[int], whole: int) -> list[int]:
    """`whole` divided in proportion to `values`: each share cut, what is left to the largest fractions, earlier ones first."""
    total = sum(values)
    shares = [v * whole // total for v in values]
    order = sorted(range(len(values)), key=lambda n: (-(values[n] * whole % total), n))
    for n in order[: whole - sum(shares)]:
        shares[n] += 1
    return shares
