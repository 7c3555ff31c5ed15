"""Faults of the layer communication that something finds."""

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

COLLECTIVE_HANG = Fault(
    "collective_hang",
    Layer.COMMUNICATION,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "No rank makes progress; one never reached the collective that the others wait in",
    "stacks and flight recorder; restart excluding the suspect",
)

COMMUNICATION: tuple[Fault, ...] = (COLLECTIVE_HANG,)
