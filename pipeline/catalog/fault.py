"""What a fault is. The faults themselves stand in `faults.py` (found by something) and `waiting.py` (not yet)."""

from dataclasses import dataclass

from pipeline.catalog.actions import ActionKind
from pipeline.catalog.layers import Layer, Severity


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the catalogue. `seen_within` is the goal for time to detect (seconds, None: at the event itself).

    `first_action` is what Surefoot itself does first, None where that is nothing; `advice` is what is to be done, for people.
    `waits_for` names what is missing to see it, "" where it can be seen.
    """

    name: str
    layer: Layer
    severity: Severity
    seen_within: float | None
    first_action: ActionKind | None
    summary: str
    advice: str = ""
    waits_for: str = ""
