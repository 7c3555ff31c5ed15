"""What happens to GPUs, as their driver tells it. What the kernel log says of them stands with the kernel's events."""

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

GPU_LOST = EventKind(
    "gpu_lost",
    Layer.COMPUTE,
    Severity.CRITICAL,
    "A GPU that was there is no longer reached by its driver; `device` is its UUID",
    ("uuid", "pci", "model", "serial"),
)

GPU: tuple[EventKind, ...] = (GPU_LOST,)
