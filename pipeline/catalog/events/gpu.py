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
HCCL_ERROR = EventKind(
    "hccl_error",
    Layer.COMMUNICATION,
    Severity.ERROR,
    "Ascend's collectives wrote errors into a process's log, `count` lines; `code` is CANN's (EI0002: an operation timed out, EI0006: a "
    'connection), or cqe, "" where none is told',
    ("module", "pid", "comm", "file", "place"),
)
NPU_ERROR = EventKind(
    "npu_error",
    Layer.COMPUTE,
    Severity.WARNING,
    "Another library of Ascend's did; `module` says which, `code` is CANN's, \"\" where none is told",
    ("module", "pid", "comm", "file", "place"),
)

GPU: tuple[EventKind, ...] = (GPU_LOST, HCCL_ERROR, NPU_ERROR)
