"""How long a run may go without any progress before that is a stall: from its own step times, by phase."""

from collections.abc import Iterable
from dataclasses import dataclass

from alerts.snapshot import Pace
from pipeline.catalog.layers import Phase
from pipeline.settings import DetectSettings

CALIBRATED = 5  # steps, first ones left out, from which the run's own pace is believed
UNCALIBRATED_FLOORS = 20  # until then the limit is at least this many floors
TAIL_FACTOR = 2.0  # on the slowest percent of steps
HISTORY_FACTOR = 3.0  # on the longest that a long phase has ever taken
BETWEEN = "between_steps"  # where a trainer does what it gives no phase: an eval, a save, a data loader that starts anew
ORDINARY = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.COMM_WAIT, ""})


@dataclass(frozen=True, slots=True)
class Limit:
    """Seconds, and why so many."""

    seconds: float
    reason: str


def limit(detect: DetectSettings, pace: Pace | None, phases: Iterable[str], *, stepped: bool) -> Limit:
    """The limit for an attempt whose ranks are in `phases` (or BETWEEN); the most patient of them counts.

    `stepped`: whether the attempt has completed a step; before that, everything may take `start_limit`.
    """
    base = _base(detect, pace) if stepped else Limit(detect.start_limit, "before the first step")
    longer = (_phase(detect, pace, phase) for phase in set(phases) - ORDINARY)
    return max((base, *longer), key=lambda one: one.seconds)


def _base(detect: DetectSettings, pace: Pace | None) -> Limit:
    floor = detect.stall_floor
    if pace is None or pace.steps < CALIBRATED or pace.median is None or pace.p99 is None:
        longest = (pace and pace.longest) or 0.0
        return Limit(max(UNCALIBRATED_FLOORS * floor, detect.stall_factor * longest), f"fewer than {CALIBRATED} steps seen yet")
    own = max(detect.stall_factor * pace.median, TAIL_FACTOR * pace.p99)
    return Limit(max(floor, own), f"steps of this run take {pace.median:.3g} s, the slowest percent {pace.p99:.3g} s")


def _phase(detect: DetectSettings, pace: Pace | None, phase: str) -> Limit:
    seen = pace.phases.get(phase, 0.0) if pace else 0.0
    allowed = detect.phase_limits.get(phase, detect.start_limit)
    return Limit(max(allowed, HISTORY_FACTOR * seen), f"in {phase.replace('_', ' ')}")
