"""What happens in a job: its ranks, its phases, its launchers."""

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

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

JOB: tuple[EventKind, ...] = (
    RANK_STARTED,
    RANK_EXITED,
    COMMAND_EXITED,
    PHASE,
    CHECKPOINT_COMPLETED,
    CAPTURE,
    ACTION_PROGRESS,
)
