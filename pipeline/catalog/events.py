"""Every kind of event, once. An event is something that happened once, on one entity, at one time."""

from dataclasses import dataclass

from pipeline.catalog.layers import Layer, Severity


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event. `attrs` are the keys that its `attrs` map may hold besides the columns of the table."""

    name: str
    layer: Layer
    severity: Severity
    help: str
    attrs: tuple[str, ...] = ()


RANK_STARTED = EventKind(
    "rank_started", Layer.FRAMEWORK, Severity.INFO, "A rank's process was seen for the first time", ("pid", "local_rank")
)
RANK_EXITED = EventKind(
    "rank_exited",
    Layer.FRAMEWORK,
    Severity.INFO,
    "A rank's process ended; `code` is its exit status, negative for a signal, empty where it could not be learnt",
    ("pid", "local_rank", "signal", "error", "stopped_by"),
)
COMMAND_EXITED = EventKind(
    "command_exited",
    Layer.FRAMEWORK,
    Severity.INFO,
    "On one of a run's nodes the command ended; `code` is its exit status, negative for a signal",
    ("stopped_by", "error"),
)
PHASE = EventKind("phase", Layer.FRAMEWORK, Severity.INFO, "A phase outside any step ended; `code` is the phase, `duration` its length", ())
CHECKPOINT_COMPLETED = EventKind(
    "checkpoint_completed", Layer.STORAGE, Severity.INFO, "A checkpoint got its completeness mark; `code` is the step", ("path", "bytes")
)
RING_OVERRUN = EventKind(
    "ring_overrun", Layer.UNKNOWN, Severity.WARNING, "Step records were overwritten before the agent read them; `count` of them", ()
)
RING_INVALID = EventKind(
    "ring_invalid", Layer.UNKNOWN, Severity.WARNING, "A ring file was refused: owner, size or header is wrong", ("path",)
)
CAPTURE = EventKind(
    "capture",
    Layer.FRAMEWORK,
    Severity.INFO,
    "Evidence taken from a rank before it was stopped; `code` is stacks, flight_recorder or live",
    ("pid", "path", "text"),
)
ACTION_PROGRESS = EventKind(
    "action_progress",
    Layer.FRAMEWORK,
    Severity.INFO,
    "A launcher's answer to a request; `code` is accepted, done, failed or refused",
    ("action", "term"),
)
OOM_KILL = EventKind(
    "oom_kill",
    Layer.KERNEL,
    Severity.CRITICAL,
    "The kernel killed processes for want of memory, `count` of them; `code` is cgroup where it was the job's limit, else node",
    ("cgroup", "ranks"),
)
AGENT_STARTED = EventKind("agent_started", Layer.UNKNOWN, Severity.INFO, "A node's agent started; `code` is the boot id", ())
COLLECTOR_FAILED = EventKind("collector_failed", Layer.UNKNOWN, Severity.WARNING, "A collector gave no readings; `code` is its name", ())

EVENTS: tuple[EventKind, ...] = (
    RANK_STARTED,
    RANK_EXITED,
    COMMAND_EXITED,
    PHASE,
    CHECKPOINT_COMPLETED,
    RING_OVERRUN,
    RING_INVALID,
    CAPTURE,
    ACTION_PROGRESS,
    OOM_KILL,
    AGENT_STARTED,
    COLLECTOR_FAILED,
)
BY_NAME: dict[str, EventKind] = {e.name: e for e in EVENTS}
