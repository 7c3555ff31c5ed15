"""The fault catalogue: every fault Surefoot names, once, with its layer, its goal for detection and its first action.

A name is never reused. Faults whose detectors come later stand in `waiting.py`, so that names, drills, runbooks and
reports agree from the start. What shows an explicit fault is a row of `rules.py`.
"""

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.fault import Fault as Fault
from pipeline.catalog.layers import Layer, Severity
from pipeline.catalog.waiting import WAITING

RANK_CRASH = Fault(
    "rank_crash",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    2,
    RESTART_RUN,
    "A rank's process died",
    "read how it ended; look at the node where it happens again",
)
RANK_STOPPED = Fault(
    "rank_stopped",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "A rank's process is stopped while its peers wait",
    "find out who or what stopped it",
)
COLLECTIVE_HANG = Fault(
    "collective_hang",
    Layer.COMMUNICATION,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "No rank makes progress; one never reached the collective that the others wait in",
    "stacks and flight recorder; restart excluding the suspect",
)
STARTUP_FAILURE = Fault(
    "startup_failure",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    2,
    RESTART_RUN,
    "The run ended at its start",
    "restart once; read the log's last lines",
)
HOST_DOWN = Fault(
    "host_down",
    Layer.KERNEL,
    Severity.CRITICAL,
    5,
    RESTART_RUN,
    "A node is down or cut off, its agent and launcher are both silent",
    "take the node out; look at its console, power and cable",
)
TELEMETRY_LOST = Fault(
    "telemetry_lost",
    Layer.UNKNOWN,
    Severity.WARNING,
    10,
    None,
    "A node's agent is silent while its launcher still speaks; the run itself may be well",
    "page the platform's owner; never act on nodes",
)
LAUNCHER_LOST = Fault(
    "launcher_lost",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    20,
    None,
    "A run's launcher is gone: nobody watches or restarts its ranks",
    "start the run again",
)
NODE_LEFT = Fault(
    "node_left",
    Layer.FRAMEWORK,
    Severity.CRITICAL,
    5,
    RESTART_RUN,
    "A node has left its run",
    "see why that launcher ended; start one in its place, with the run's id, if the run waits for it",
)
RESTART_LOOP = Fault(
    "restart_loop",
    Layer.SCHEDULER,
    Severity.CRITICAL,
    None,
    None,
    "The run failed the same way too often; Surefoot stopped restarting it",
    "stop; page the run's owner",
)
HOST_OOM_KILL = Fault(
    "host_oom_kill",
    Layer.KERNEL,
    Severity.CRITICAL,
    2,
    RESTART_RUN,
    "The kernel killed a process for want of memory",
    "find what grew; take the node out if it alone is hit",
)
KERNEL_PANIC_REBOOT = Fault(
    "kernel_panic_reboot",
    Layer.KERNEL,
    Severity.CRITICAL,
    5,
    None,
    "A node of a run was started anew",
    "exclude the node, restart; inspection after a repeat",
)
CPU_CONTENTION = Fault(
    "cpu_contention",
    Layer.KERNEL,
    Severity.WARNING,
    30,
    None,
    "Tasks wait for a processor nearly all the time",
    "watch; page the run's owner",
)
MOUNT_HUNG = Fault(
    "mount_hung",
    Layer.STORAGE,
    Severity.CRITICAL,
    10,
    None,
    "A file system does not answer",
    "exclude the node if it is one, page storage if it is many",
)
MOUNT_STALE_OR_GONE = Fault(
    "mount_stale_or_gone",
    Layer.STORAGE,
    Severity.CRITICAL,
    10,
    None,
    "A file system is stale or no longer mounted",
    "mount it again; exclude the node",
)
FILESYSTEM_FULL = Fault(
    "filesystem_full",
    Layer.STORAGE,
    Severity.ERROR,
    10,
    None,
    "A file system is full",
    "free space there before the next checkpoint is written",
)
FILESYSTEM_READ_ONLY = Fault(
    "filesystem_read_only",
    Layer.STORAGE,
    Severity.CRITICAL,
    2,
    None,
    "A file system became read-only",
    "exclude the node",
)

FAULTS: tuple[Fault, ...] = (
    RANK_CRASH,
    RANK_STOPPED,
    COLLECTIVE_HANG,
    STARTUP_FAILURE,
    HOST_DOWN,
    TELEMETRY_LOST,
    LAUNCHER_LOST,
    NODE_LEFT,
    RESTART_LOOP,
    HOST_OOM_KILL,
    KERNEL_PANIC_REBOOT,
    CPU_CONTENTION,
    MOUNT_HUNG,
    MOUNT_STALE_OR_GONE,
    FILESYSTEM_FULL,
    FILESYSTEM_READ_ONLY,
    *WAITING,
)
BY_NAME: dict[str, Fault] = {f.name: f for f in FAULTS}
