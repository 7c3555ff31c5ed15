"""What an agent tells of itself."""

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

AGENT_STARTED = EventKind("agent_started", Layer.UNKNOWN, Severity.INFO, "A node's agent started; `code` is the boot id", ())
COLLECTOR_FAILED = EventKind("collector_failed", Layer.UNKNOWN, Severity.WARNING, "A collector gave no readings; `code` is its name", ())
RING_OVERRUN = EventKind(
    "ring_overrun", Layer.UNKNOWN, Severity.WARNING, "Step records were overwritten before the agent read them; `count` of them", ()
)
RING_INVALID = EventKind(
    "ring_invalid", Layer.UNKNOWN, Severity.WARNING, "A ring file was refused: owner, size or header is wrong", ("path",)
)

AGENT: tuple[EventKind, ...] = (
    AGENT_STARTED,
    COLLECTOR_FAILED,
    RING_OVERRUN,
    RING_INVALID,
)
