"""The fault catalogue: every fault Surefoot names, once, with its layer, its goal for detection and its first action.

A name is never reused. `signal` says what shows it; faults whose detectors come later stand here
already, so that names, drills, runbooks and reports agree from the start.
"""

from dataclasses import dataclass

from pipeline.catalog.actions import RESTART_RUN, ActionKind
from pipeline.catalog.layers import Layer, Severity


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the catalogue. `seen_within` is the goal for time to detect (seconds, None: at the event itself)."""

    name: str
    layer: Layer
    severity: Severity
    seen_within: float | None
    first_action: ActionKind | None
    summary: str


RANK_CRASH = Fault("rank_crash", Layer.FRAMEWORK, Severity.CRITICAL, 2, RESTART_RUN, "A rank's process died")
RANK_STOPPED = Fault(
    "rank_stopped",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "A rank's process is stopped while its peers wait",
)
COLLECTIVE_HANG = Fault(
    "collective_hang",
    Layer.COMMUNICATION,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "No rank makes progress; one never reached the collective that the others wait in",
)
STARTUP_FAILURE = Fault("startup_failure", Layer.FRAMEWORK, Severity.CRITICAL, 2, RESTART_RUN, "The run ended at its start")
HOST_DOWN = Fault("host_down", Layer.KERNEL, Severity.CRITICAL, 5, RESTART_RUN, "Agent and launcher of a node are silent together")
TELEMETRY_LOST = Fault(
    "telemetry_lost",
    Layer.UNKNOWN,
    Severity.WARNING,
    10,
    None,
    "A node's agent is silent while its launcher still speaks; the run itself may be well",
)
LAUNCHER_LOST = Fault(
    "launcher_lost",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    20,
    None,
    "A run's launcher is gone: nobody watches or restarts its ranks",
)
RESTART_LOOP = Fault(
    "restart_loop", Layer.SCHEDULER, Severity.CRITICAL, None, None, "The run failed the same way too often; Surefoot stopped restarting it"
)

FAULTS: tuple[Fault, ...] = (
    RANK_CRASH,
    RANK_STOPPED,
    COLLECTIVE_HANG,
    STARTUP_FAILURE,
    HOST_DOWN,
    TELEMETRY_LOST,
    LAUNCHER_LOST,
    RESTART_LOOP,
)
BY_NAME: dict[str, Fault] = {f.name: f for f in FAULTS}
