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

SCHEDULER: tuple[Fault, ...] = (RESTART_LOOP,)
