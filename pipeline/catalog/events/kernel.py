"""What the kernel tells. `message` of those of its log is the line; `clock_source` says whose clock `at` is: kernel, receive or journal."""

from typing import Final

from pipeline.catalog.event import EventKind
from pipeline.catalog.layers import Layer, Severity

_LOG: Final = ("clock_source",)
_PROCESS: Final = ("pid", "comm", *_LOG)
_GPU: Final = ("uuid", "pci", *_PROCESS)  # uuid: the GPU's, or where that is not known its PCI address

OOM_KILL = EventKind(
    "oom_kill",
    Layer.KERNEL,
    Severity.CRITICAL,
    "The kernel killed processes for want of memory, `count` of them; `code` is cgroup where it was the job's limit, else node; "
    "its log would name a killed rank of `known_runs`",
    ("cgroup", "ranks", "known_runs"),
)
OOM_VICTIM = EventKind(
    "oom_victim",
    Layer.KERNEL,
    Severity.CRITICAL,
    "A process that the kernel killed for want of memory; `code` is rank, child (of a rank) or node, which is none of `known_runs`",
    (*_PROCESS, "cgroup", "known_runs"),
)
XID = EventKind(
    "xid",
    Layer.COMPUTE,
    Severity.ERROR,
    "NVIDIA's driver reported an error of a GPU; `code` is the XID, `action` what NVIDIA's catalogue wants done",
    (*_GPU, "mnemonic", "summary", "action", "investigate", "subcode", "link", "fatal", "reason", "status", "follows", "instance"),
)
SXID = EventKind(
    "sxid", Layer.COMPUTE, Severity.ERROR, "An NVSwitch reported an error; `code` is the SXID", ("pci", "link", "fatal", "action", *_LOG)
)
GPU_INIT_FAILED = EventKind("gpu_init_failed", Layer.COMPUTE, Severity.ERROR, "NVIDIA's driver could not start a GPU", _GPU)
HUNG_TASK = EventKind(
    "hung_task",
    Layer.KERNEL,
    Severity.CRITICAL,
    "Something does not go on in the kernel; `code` is task, soft_lockup, hard_lockup, rcu_stall or workqueue",
    (*_PROCESS, "cpu", "seconds"),
)
MACHINE_CHECK = EventKind(
    "machine_check",
    Layer.KERNEL,
    Severity.ERROR,
    "The hardware reported an error of processor or memory; `code` is corrected, uncorrected, or reported where it is not said",
    ("cpu", "bank", "dimm", "errors", *_LOG),
)
THERMAL = EventKind(
    "thermal", Layer.KERNEL, Severity.WARNING, "Something is too hot; `code` is cpu, zone or adapter", ("cpu", "zone", "pci", *_LOG)
)
PCIE_ERROR = EventKind(
    "pcie_error",
    Layer.KERNEL,
    Severity.WARNING,
    "A PCIe device reported an error; `code` is corrected, nonfatal or fatal",
    ("uuid", "pci", "error_type", *_LOG),
)
IO_ERROR = EventKind(
    "io_error",
    Layer.STORAGE,
    Severity.ERROR,
    "A disk did not do what it was asked for; `code` is io, medium, target, timeout or controller",
    ("disk", "operation", "sector", *_LOG),
)
FILESYSTEM_ERROR = EventKind(
    "filesystem_error",
    Layer.STORAGE,
    Severity.ERROR,
    "A file system found itself damaged, or was shut down; `code` is error or shutdown",
    ("mount_point", "source", "type", *_LOG),
)
REMOUNTED_READ_ONLY = EventKind(
    "remounted_read_only",
    Layer.STORAGE,
    Severity.CRITICAL,
    "A file system made itself read-only",
    ("mount_point", "source", "type", *_LOG),
)
SERVER_LOST = EventKind(
    "storage_server", Layer.STORAGE, Severity.ERROR, "A storage server does not answer; `code` is lost, or back", ("server", "type", *_LOG)
)
LINK_CHANGED = EventKind(
    "link_changed",
    Layer.COMMUNICATION,
    Severity.WARNING,
    "A network port changed; `code` is up, down or module",
    ("interface", "pci", *_LOG),
)
SEGFAULT = EventKind(
    "segfault",
    Layer.KERNEL,
    Severity.WARNING,
    "The kernel ended a process for what it did; `code` is segfault, general_protection or invalid_opcode",
    (*_PROCESS, "object"),
)
KERNEL_OOPS = EventKind(
    "kernel_oops", Layer.KERNEL, Severity.CRITICAL, "The kernel found a defect in itself; `code` is panic, oops or bug", _LOG
)
KERNEL_CRASHED = EventKind(
    "kernel_crashed",
    Layer.KERNEL,
    Severity.CRITICAL,
    "What the kernel saved of a crash was found after the boot; `code` is panic or oops, `at` when it was found, `crashed_at` when saved",
    ("file", "crashed_at"),
)
KERNEL_LOG_LOST = EventKind(
    "kernel_log_lost", Layer.UNKNOWN, Severity.WARNING, "Lines of the kernel's log were overwritten before they were read; `count` of them"
)
CLOCK_SKEWED = EventKind(
    "clock_skewed",
    Layer.KERNEL,
    Severity.WARNING,
    "The node's clock differs from ingest's; `code` is ahead or behind, `at` ingest's time, `offset` seconds",
    ("offset",),
)

KERNEL: tuple[EventKind, ...] = (
    OOM_KILL,
    OOM_VICTIM,
    XID,
    SXID,
    GPU_INIT_FAILED,
    HUNG_TASK,
    MACHINE_CHECK,
    THERMAL,
    PCIE_ERROR,
    IO_ERROR,
    FILESYSTEM_ERROR,
    REMOUNTED_READ_ONLY,
    SERVER_LOST,
    LINK_CHANGED,
    SEGFAULT,
    KERNEL_OOPS,
    KERNEL_CRASHED,
    KERNEL_LOG_LOST,
    CLOCK_SKEWED,
)
