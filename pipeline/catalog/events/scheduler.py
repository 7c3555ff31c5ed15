"""What schedulers tell."""

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

NODE_CONDITION = EventKind(
    "node_condition",
    Layer.SCHEDULER,
    Severity.WARNING,
    "A condition of a node began or ended, as its scheduler says; `code` is the condition",
    ("scheduler", "state", "reason"),
)
PLACE_LOST = EventKind(
    "place_lost",
    Layer.SCHEDULER,
    Severity.WARNING,
    "The scheduler took the place of a job or pod; `code` is preempted, evicted, requeued, node_fail or node_gone",
    ("scheduler", "job", "name", "nodes"),
)
VOLUME_ATTACH_FAILED = EventKind(
    "volume_attach_failed",
    Layer.SCHEDULER,
    Severity.ERROR,
    "A volume could not be attached or mounted for a pod, `count` times; `code` is the scheduler's word for it",
    ("scheduler", "object"),
)
CLAIM_UNBOUND = EventKind(
    "claim_unbound",
    Layer.SCHEDULER,
    Severity.WARNING,
    "Nothing could be found or made for a claim of a volume, `count` times; `code` is the scheduler's word for it",
    ("scheduler", "object"),
)

SCHEDULER: tuple[EventKind, ...] = (NODE_CONDITION, PLACE_LOST, VOLUME_ATTACH_FAILED, CLAIM_UNBOUND)
