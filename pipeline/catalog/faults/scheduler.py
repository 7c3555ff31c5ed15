"""Faults of the layer scheduler that something finds."""

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

RESTART_LOOP = Fault(
    "restart_loop",
    Layer.SCHEDULER,
    Severity.CRITICAL,
    None,
    None,
    "The run failed the same way too often; Surefoot stopped restarting it",
    "stop; page the run's owner",
)
VOLUME_ATTACH_FAILURE = Fault(
    "volume_attach_failure",
    Layer.SCHEDULER,
    Severity.ERROR,
    30,
    None,
    "A volume cannot be attached, mounted or found",
    "page; reschedule",
)
NODE_NOT_READY = Fault(
    "node_not_ready",
    Layer.SCHEDULER,
    Severity.ERROR,
    10,
    None,
    "The scheduler holds a node for unfit",
    "telemetry or node? decide by steps",
)
PREEMPTED_OR_EVICTED = Fault(
    "preempted_or_evicted",
    Layer.SCHEDULER,
    Severity.WARNING,
    5,
    None,
    "The scheduler took the run's place",
    "restart when placed; charge it to its cause",
)
PENDING_CAPACITY = Fault(
    "pending_capacity",
    Layer.SCHEDULER,
    Severity.WARNING,
    60,
    None,
    "The run waits for nodes",
    "page; use spare",
)

SCHEDULER: tuple[Fault, ...] = (RESTART_LOOP, VOLUME_ATTACH_FAILURE, NODE_NOT_READY, PREEMPTED_OR_EVICTED, PENDING_CAPACITY)
