"""Faults of the layer kernel that something finds."""

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

HOST_DOWN = Fault(
    "host_down",
    Layer.KERNEL,
    Severity.CRITICAL,
    5,
    RESTART_RUN,
    "A node is down or cut off, its agent and launcher are both silent",
    "take the node out; look at its console, power and cable",
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
HUNG_TASK = Fault(
    "hung_task",
    Layer.KERNEL,
    Severity.CRITICAL,
    2,
    None,
    "Something hangs in the kernel of a node",
    "take evidence; exclude the node",
)
MACHINE_CHECK = Fault(
    "machine_check",
    Layer.KERNEL,
    Severity.ERROR,
    2,
    None,
    "A node's hardware reports errors",
    "drain after the next checkpoint; have the part changed that is named",
)
CLOCK_SKEW = Fault(
    "clock_skew",
    Layer.KERNEL,
    Severity.WARNING,
    10,
    None,
    "A node's clock is off",
    "fix its time service; times that it sent are not to be trusted",
)

KERNEL: tuple[Fault, ...] = (
    HOST_DOWN,
    HOST_OOM_KILL,
    KERNEL_PANIC_REBOOT,
    CPU_CONTENTION,
    HUNG_TASK,
    MACHINE_CHECK,
    CLOCK_SKEW,
)
