"""The words for where a fault lies, how bad it is and what a rank is doing. Each is written here once."""

from enum import StrEnum


class Layer(StrEnum):
    """The layer of the training stack that a fault belongs to."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    STORAGE = "storage"
    KERNEL = "kernel"
    FRAMEWORK = "framework"
    SCHEDULER = "scheduler"
    WORKLOAD = "workload"
    FACILITY = "facility"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """PagerDuty's four severities, worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def gravity(severity: str) -> int:
    """0 for the gravest; what is no severity comes last."""
    order: list[str] = list(Severity)
    return order.index(severity) if severity in order else len(order)


class Phase(StrEnum):
    """What a rank is doing. The order is the index in the ring, so new phases go at the end."""

    INIT = "init"
    LOAD_CHECKPOINT = "load_checkpoint"
    COMPILE = "compile"
    DATA = "data"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    COMM_WAIT = "comm_wait"
    CHECKPOINT = "checkpoint"
    EVAL = "eval"
    ROLLOUT = "rollout"
    REWARD = "reward"
    REFERENCE = "reference"
    WEIGHT_SYNC = "weight_sync"


class ActionMode(StrEnum):
    """How far an action may go without a person."""

    OFF = "off"
    DRY_RUN = "dry-run"
    APPROVE = "approve"
    AUTO = "auto"


class Category(StrEnum):
    """Where a GPU-second went. Disjoint; the first that applies wins, in this order."""

    MAINTENANCE = "maintenance"
    UNKNOWN = "unknown"
    DETECT = "detect"
    LOCATE = "locate"
    ACT = "act"
    RESTART = "restart"
    CAPACITY = "capacity"
    INIT = "init"
    LOAD_CHECKPOINT = "load_checkpoint"
    COMPILE = "compile"
    CHECKPOINT = "checkpoint"
    EVAL = "eval"
    LOST_PROGRESS = "lost_progress"
    DATA_WAIT = "data_wait"
    ROLLOUT_IDLE = "rollout_idle"
    SLOW = "slow"
    PRODUCTIVE = "productive"
    IDLE = "idle"
