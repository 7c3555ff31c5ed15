"""Faults of the layer framework that something finds."""

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

RANK_CRASH = Fault(
    "rank_crash",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    2,
    RESTART_RUN,
    "A rank's process died",
    "read how it ended; look at the node where it happens again",
)
RANK_STOPPED = Fault(
    "rank_stopped",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "A rank's process is stopped while its peers wait",
    "find out who or what stopped it",
)
STARTUP_FAILURE = Fault(
    "startup_failure",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    2,
    RESTART_RUN,
    "The run ended at its start",
    "restart once; read the log's last lines",
)
TELEMETRY_LOST = Fault(
    "telemetry_lost",
    Layer.UNKNOWN,
    Severity.WARNING,
    10,
    None,
    "A node's agent is silent while its launcher still speaks; the run itself may be well",
    "page the platform's owner; never act on nodes",
)
LAUNCHER_LOST = Fault(
    "launcher_lost",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    20,
    None,
    "A run's launcher is gone: nobody watches or restarts its ranks",
    "start the run again",
)
NODE_LEFT = Fault(
    "node_left",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    5,
    RESTART_RUN,
    "A node has left its run",
    "see why that launcher ended; start one in its place, with the run's id, if the run waits for it",
)

FRAMEWORK: tuple[Fault, ...] = (
    RANK_CRASH,
    RANK_STOPPED,
    STARTUP_FAILURE,
    TELEMETRY_LOST,
    LAUNCHER_LOST,
    NODE_LEFT,
)
