"""Every colour of the console, once. Chosen to stay apart for colour-blind eyes: families differ in hue, members in lightness."""

from dataclasses import dataclass

from pipeline.catalog.layers import Category, Phase, Severity
from pipeline.nodes import NodeState
from pipeline.vitals import Health


@dataclass(frozen=True, slots=True)
class Mark:
    """A colour with a sign, so that nothing is said by colour alone."""

    colour: str
    sign: str


SEVERITIES: dict[str, Mark] = {
    Severity.CRITICAL: Mark("#c2362b", "◆"),
    Severity.ERROR: Mark("#d9692b", "▲"),
    Severity.WARNING: Mark("#b98900", "▲"),
    Severity.INFO: Mark("#2f78b7", "●"),
}

HEALTHS: dict[str, Mark] = {
    Health.OK: Mark("#1f8a70", "✓"),
    Health.DEGRADED: Mark("#b98900", "▲"),
    Health.FAILED: Mark("#c2362b", "◆"),
    Health.UNKNOWN: Mark("#7a8592", "?"),
}

NODES: dict[str, Mark] = {
    NodeState.FAILED: HEALTHS[Health.FAILED],
    NodeState.UNKNOWN: HEALTHS[Health.UNKNOWN],
    NodeState.LOST: Mark("#7563a8", "~"),
    NodeState.DEGRADED: HEALTHS[Health.DEGRADED],
    NodeState.OK: HEALTHS[Health.OK],
    NodeState.GONE: Mark("#aab3bb", "○"),
}

INCIDENT, START_UP, WAITING, PRODUCTIVE, BLIND = (
    "incidents",
    "start-up, checkpoint, eval",
    "waiting and slow",
    "productive",
    "unknown, idle, maintenance",
)

GROUPS: dict[str, str] = {PRODUCTIVE: "#5f9fd1", WAITING: "#e3bf3f", START_UP: "#8a78b8", INCIDENT: "#d9602f", BLIND: "#c3c9cf"}

CATEGORIES: dict[str, tuple[str, str]] = {
    Category.PRODUCTIVE: (PRODUCTIVE, "#5f9fd1"),
    Category.SLOW: (WAITING, "#b98f0c"),
    Category.DATA_WAIT: (WAITING, "#e3bf3f"),
    Category.ROLLOUT_IDLE: (WAITING, "#f2dd8f"),
    Category.INIT: (START_UP, "#54448a"),
    Category.LOAD_CHECKPOINT: (START_UP, "#7563a8"),
    Category.COMPILE: (START_UP, "#9687c4"),
    Category.CHECKPOINT: (START_UP, "#b7abdb"),
    Category.EVAL: (START_UP, "#d5cdec"),
    Category.DETECT: (INCIDENT, "#7f2410"),
    Category.LOCATE: (INCIDENT, "#a63a17"),
    Category.ACT: (INCIDENT, "#c94f22"),
    Category.RESTART: (INCIDENT, "#e57a45"),
    Category.LOST_PROGRESS: (INCIDENT, "#f3b08a"),
    Category.MAINTENANCE: (BLIND, "#59646f"),
    Category.CAPACITY: (BLIND, "#818c97"),
    Category.IDLE: (BLIND, "#aab3bb"),
    Category.UNKNOWN: (BLIND, "#cfd5da"),
}
"""Of each ledger category its group and its colour, in the order in which bars are drawn."""

PHASES: dict[str, str] = {
    Phase.DATA: "#e3bf3f",
    Phase.FORWARD: "#2f78b7",
    Phase.BACKWARD: "#74acd8",
    Phase.OPTIMIZER: "#1f8a70",
    Phase.COMM_WAIT: "#d9602f",
    Phase.CHECKPOINT: "#8a78b8",
    Phase.EVAL: "#b7abdb",
    Phase.COMPILE: "#54448a",
    Phase.INIT: "#59646f",
    Phase.LOAD_CHECKPOINT: "#818c97",
    Phase.ROLLOUT: "#0e5a86",
    Phase.REWARD: "#62bfa5",
    Phase.REFERENCE: "#a7dccd",
    Phase.WEIGHT_SYNC: "#f3b08a",
    "other": "#cfd5da",
}

RANKS: tuple[str, ...] = ("#2f78b7", "#d9602f", "#1f8a70", "#8a78b8", "#b98f0c", "#c45a94", "#59b4d9", "#59646f")
"""Lines of single ranks, slowest first."""

UNKNOWN_COLOUR = "#7a8592"
PAST = "#aab3bb"  # what is over and asks for nothing
_GOOD, _GOING, _DUE, _BAD, _OVER = (
    Mark("#1f8a70", "✓"),
    Mark("#2f78b7", "▸"),
    Mark("#b98900", "●"),
    Mark("#c2362b", "✕"),
    Mark(UNKNOWN_COLOUR, "○"),
)

STATES: dict[str, Mark] = {
    **dict.fromkeys(("resolved", "finished", "succeeded", "cleared", "sent"), _GOOD),
    **dict.fromkeys(("recovering", "mitigating", "started", "issued", "accepted", "starting", "running"), _GOING),
    **dict.fromkeys(("open", "waiting", "proposed", "stopping", "queued"), _DUE),
    **dict.fromkeys(("failed",), _BAD),
    **dict.fromkeys(("cancelled", "expired", "dry_run", "ended", "stopped"), _OVER),
}
"""The marks of the states of runs, attempts, findings, incidents, actions and notifications."""


def state(name: str) -> Mark:
    """The mark of a state; grey with a question mark for one that is not known."""
    return STATES.get(name, Mark(UNKNOWN_COLOUR, "?"))


def severity(name: str) -> Mark:
    """The mark of a severity; grey with a question mark for a name that the catalogue does not have."""
    return SEVERITIES.get(name, Mark(UNKNOWN_COLOUR, "?"))
