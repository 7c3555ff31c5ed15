"""Faults of the layer workload that something finds."""

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

GPU_ILLEGAL_ACCESS = Fault(
    "gpu_illegal_access",
    Layer.WORKLOAD,
    Severity.ERROR,
    None,
    None,
    "A kernel touched GPU memory that it may not",
    "the code, where it comes on several nodes; the GPU, where it comes on one again and again",
)

WORKLOAD: tuple[Fault, ...] = (GPU_ILLEGAL_ACCESS,)
