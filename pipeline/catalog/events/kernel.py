"""What the kernel tells."""

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

OOM_KILL = EventKind(
    "oom_kill",
    Layer.KERNEL,
    Severity.CRITICAL,
    "The kernel killed processes for want of memory, `count` of them; `code` is cgroup where it was the job's limit, else node",
    ("cgroup", "ranks"),
)

KERNEL: tuple[EventKind, ...] = (OOM_KILL,)
