"""A run's own healthy step time.

After Google's goodput library (github.com/AI-Hypercomputer/ml-goodput-measurement): the ideal step is the mean
of the steps up to median + 3 MAD. Its floor of one second on the deviation is left out: our steps may
take a fifth of that. A step counts as slow only beyond that limit, and then with all that it took beyond
the mean, so that the scatter of healthy steps does not add up to a loss.
"""

from collections.abc import Sequence
from statistics import median_low

from slo.history import Pace

DEVIATIONS = 3
MIN_STEPS = 10  # with fewer, nothing is called slow


def pace(work: Sequence[int]) -> Pace | None:
    """The pace of steps of which each took `work` microseconds (phases that are no work left out); None for too few.

    Medians are the lower middle value, the mean is cut to whole microseconds: as `pipeline/queries/run_work.sql` has it.
    """
    if len(work) < MIN_STEPS:
        return None
    middle = median_low(work)
    limit = middle + DEVIATIONS * median_low([abs(w - middle) for w in work])
    healthy = [w for w in work if w <= limit]
    return Pace(sum(healthy) // len(healthy), limit)
