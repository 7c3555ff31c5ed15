"""Which lines of the kernel's log tell of what: one table, read from its top, the first row that fits decides. Pure.

The texts are those of the kernel's and the drivers' own sources. A row's `hint` must be in the line: most lines have none and cost little.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pipeline.catalog.events import (
    FILESYSTEM_ERROR,
    GPU_INIT_FAILED,
    HUNG_TASK,
    IO_ERROR,
    KERNEL_OOPS,
    LINK_CHANGED,
    MACHINE_CHECK,
    OOM_VICTIM,
    PCIE_ERROR,
    REMOUNTED_READ_ONLY,
    SEGFAULT,
    SERVER_LOST,
    SXID,
    THERMAL,
    XID,
    EventKind,
)

_PCI: Final = r"(?P<pci>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{1,2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
_DISK: Final = r"(?P<disk>[\w!.-]{1,64})"
_DEVICE: Final = r"(?P<source>[\w!./-]{1,128})"
_PROCESS: Final = r"(?P<comm>.{1,64}?)\[(?P<pid>\d+)\]"
_INTERFACE: Final = r"(?P<interface>[\w.@-]{1,32})"


@dataclass(frozen=True, slots=True)
class Line:
    """Lines with `hint` in them that `pattern` finds something in are of `kind`. Its groups are the event's attributes; the group `code`,
    translated by `codes`, or else `code` is the event's code."""

    kind: EventKind
    hint: str
    pattern: re.Pattern[str]
    code: str = ""
    codes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a line tells: the kind of event, its code, and what else could be read."""

    kind: EventKind
    code: str
    attrs: Mapping[str, str]


def _line(kind: EventKind, hint: str, pattern: str, code: str = "", **codes: str) -> Line:
    return Line(kind, hint, re.compile(pattern, re.DOTALL), code, codes)


_NVIDIA: Final = (
    _line(
        XID,
        "NVRM: Xid (",
        rf"NVRM: Xid \((?:PCI:)?{_PCI}(?: GPU-I:(?P<instance>\d+))?[^)]*\): (?P<code>\d+)"
        r"(?:, pid='?(?P<pid>\d+|<unknown>)'?)?(?:, name=(?P<comm>[^,]{0,64}))?"
        r"(?:, (?P<subcode>[A-Z][A-Z0-9_/]+) +(?P<fatal>Fatal|Nonfatal) +XC ?\d+ +i ?\d+ +Link +(?P<link>-?\d+)"
        r"(?: *[(\[](?P<info>0x[0-9a-fA-F]{1,8})(?: +(?P<status>0x[0-9a-fA-F]{1,8}))?)?)?",
    ),
    _line(XID, "fallen off the bus", rf"NVRM: GPU (?:at )?(?:PCI:)?{_PCI}: GPU has fallen off the bus", "79"),
    _line(XID, "fallen off the bus", rf"NVRM: The NVIDIA GPU (?:PCI:)?{_PCI}\b.{{0,400}}fallen off the bus", "79"),
    _line(
        SXID,
        "SXid (",
        rf"nvidia-nvswitch\d+: SXid \((?:PCI:)?{_PCI}\): (?P<code>\d+)(?:, (?P<fatal>Fatal|Non-fatal))?(?:,? ?Link (?P<link>\d+))?",
    ),
    _line(GPU_INIT_FAILED, "RmInitAdapter failed", rf"NVRM: GPU (?:PCI:)?{_PCI}: RmInitAdapter failed"),
)
_HANGS: Final = (
    _line(
        HUNG_TASK,
        "blocked",
        r"INFO: task (?P<comm>.{1,64}):(?P<pid>\d+) blocked(?: in I/O wait)? for more than (?P<seconds>\d+) sec",
        "task",
    ),
    _line(
        HUNG_TASK,
        "soft lockup",
        r"BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<seconds>\d+)s!(?: \[(?P<comm>.*):(?P<pid>\d+)\])?",
        "soft_lockup",
    ),
    _line(HUNG_TASK, "LOCKUP", r"Watchdog detected hard LOCKUP on cpu (?P<cpu>\d+)", "hard_lockup"),
    _line(HUNG_TASK, "stall", r"rcu: INFO: \w+ (?:self-detected stall on CPU|detected (?:expedited )?stalls on CPUs/tasks)", "rcu_stall"),
    _line(HUNG_TASK, "workqueue lockup", r"BUG: workqueue lockup - pool .{0,200}stuck for (?P<seconds>\d+)s!", "workqueue"),
)
_MEMORY: Final = (
    _line(
        OOM_VICTIM,
        "Kill",
        r"Killed process (?P<pid>\d+) \((?P<comm>.{0,64}?)\),? (?:UID \d+,? )?total-vm",
    ),
)
_HARDWARE: Final = (
    _line(
        MACHINE_CHECK,
        "EDAC",
        r"EDAC .{1,40}: (?P<errors>\d+) (?P<code>CE|UE) .{0,200}? on (?P<dimm>\S{1,100})",
        CE="corrected",
        UE="uncorrected",
    ),
    _line(
        MACHINE_CHECK,
        "Machine Check",
        r"\[Hardware Error\]: CPU (?P<cpu>\d+): Machine Check Exception: .{0,40}?Bank (?P<bank>\d+)",
        "uncorrected",
    ),
    _line(MACHINE_CHECK, "Machine Check", r"\[Hardware Error\]: CPU (?P<cpu>\d+): Machine Check: .{0,40}?Bank (?P<bank>\d+)", "reported"),
    _line(MACHINE_CHECK, "Hardware Error", r"\[Hardware Error\]: (?:Uncorrected|Deferred error|System Fatal error)", "uncorrected"),
    _line(MACHINE_CHECK, "Uncorrected", r"mce: Uncorrected hardware memory error", "uncorrected"),
    _line(MACHINE_CHECK, "Hardware Error", r"\[Hardware Error\]: Corrected error, no action required", "corrected"),
    _line(
        MACHINE_CHECK,
        "event severity",
        r"\[Hardware Error\]: event severity: (?P<code>corrected|recoverable|fatal|info)",
        recoverable="uncorrected",
        fatal="uncorrected",
        info="reported",
    ),
    _line(MACHINE_CHECK, "Memory failure", r"^Memory failure: 0x[0-9a-f]+: ", "uncorrected"),
    _line(THERMAL, "temperature above threshold", r"CPU(?P<cpu>\d+): (?:Core|Package) temperature above threshold", "cpu"),
    _line(THERMAL, "critical temperature", r"thermal (?P<zone>thermal_zone\d+): .{0,60}critical temperature", "zone"),
    _line(THERMAL, "High temperature", rf"{_PCI}[: ].{{0,60}}High temperature on sensors", "adapter"),
    _line(
        PCIE_ERROR,
        "PCIe Bus Error",
        rf"{_PCI}: PCIe Bus Error: severity=(?P<code>Correct|Uncorrect\w+ \(Non-Fatal\)|Uncorrect\w+ \(Fatal\))\w*, "
        r"type=(?P<error_type>[\w ]+)",
        **{
            "Correct": "corrected",
            "Uncorrected (Non-Fatal)": "nonfatal",
            "Uncorrectable (Non-Fatal)": "nonfatal",
            "Uncorrected (Fatal)": "fatal",
            "Uncorrectable (Fatal)": "fatal",
        },
    ),
    _line(PCIE_ERROR, "DPC: containment event", rf"{_PCI}: DPC: containment event", "fatal"),
)
_DISKS: Final = (
    _line(
        IO_ERROR, "I/O error, dev ", rf"(?:^|: )I/O error, dev {_DISK}, sector (?P<sector>\d+)(?: op 0x\w+:\((?P<operation>\w+)\))?", "io"
    ),
    _line(
        IO_ERROR,
        "error, dev ",
        rf"critical (?P<code>medium|target) error, dev {_DISK}, sector (?P<sector>\d+)(?: op 0x\w+:\((?P<operation>\w+)\))?",
    ),
    _line(IO_ERROR, "Buffer I/O error", rf"Buffer I/O error on dev(?:ice)? {_DISK}, logical block (?P<sector>\d+)", "io"),
    _line(IO_ERROR, "timeout", rf"^nvme {_DISK}: I/O .{{0,80}}timeout, (?:aborting|reset|disable)", "timeout"),
    _line(
        IO_ERROR,
        "nvme",
        rf"^nvme {_DISK}: (?:controller is down; will reset|Removing after probe failure|Device not ready; aborting|Disabling device)",
        "controller",
    ),
)
_FILE_SYSTEMS: Final = (
    _line(REMOUNTED_READ_ONLY, "emounting filesystem read-only", rf"^(?P<type>\w+)-fs \({_DEVICE}\): Remounting filesystem read-only"),
    _line(REMOUNTED_READ_ONLY, "set read-only", rf"^(?P<type>\w+)-fs \({_DEVICE}\): Filesystem has been set read-only"),
    _line(
        REMOUNTED_READ_ONLY,
        "forced readonly",
        rf"^(?P<type>BTRFS) \w+ \(device {_DEVICE}(?:: state \w+)?\).{{0,60}}forced readonly",
    ),
    _line(
        REMOUNTED_READ_ONLY,
        "emounting ",
        rf"^(?P<type>\w+)-fs error \(device {_DEVICE}\): .{{0,300}}[Rr]emounting (?:filesystem )?read-only",
    ),
    _line(FILESYSTEM_ERROR, "-fs error", rf"^(?P<type>\w+)-fs error \(device {_DEVICE}\)", "error"),
    _line(FILESYSTEM_ERROR, "hutting down", rf"^(?P<type>XFS) \({_DEVICE}\): .{{0,200}}[Ss]hutting down filesystem", "shutdown"),
    _line(FILESYSTEM_ERROR, "shut down", rf"^(?P<type>XFS) \({_DEVICE}\): Filesystem has been shut down", "shutdown"),
    _line(
        FILESYSTEM_ERROR,
        "XFS",
        rf"^(?P<type>XFS) \({_DEVICE}\): (?:[Mm]etadata (?:I/O error|corruption|CRC error)|Corruption |log I/O error)",
        "error",
    ),
    _line(FILESYSTEM_ERROR, "BTRFS", rf"^(?P<type>BTRFS):? (?:error|critical) \(device {_DEVICE}(?:: state \w+)?\)", "error"),
    _line(SERVER_LOST, "not responding", r"^(?P<type>nfs): server (?P<server>\S{1,255}) not responding", "lost"),
    _line(SERVER_LOST, "nfs: server ", r"^(?P<type>nfs): server (?P<server>\S{1,255}) OK", "back"),
    _line(SERVER_LOST, "Lustre", r"^(?P<type>Lustre)\w*: .{0,300}Connection to (?P<server>\S{1,255}).{0,100} was lost", "lost"),
    _line(SERVER_LOST, "Lustre", r"^(?P<type>Lustre)\w*: .{0,300}Connection restored to (?P<server>[^\s)]{1,255})", "back"),
)
_LINKS: Final = (
    _line(LINK_CHANGED, "Port module event", rf"mlx\w+ {_PCI}: .{{0,40}}Port module event.{{0,60}}(?:unplugged|rror)", "module"),
    _line(LINK_CHANGED, "ink", rf"{_PCI}:? (?:{_INTERFACE}: )?(?:NIC )?Link (?:is )?(?P<code>[Dd]own|[Uu]p)\b", Down="down", Up="up"),
    _line(LINK_CHANGED, "NIC Link", rf"{_PCI}.{{0,40}}?{_INTERFACE}:? NIC Link is (?P<code>Down|Up)\b", Down="down", Up="up"),
    _line(LINK_CHANGED, "link status definitely", rf"link status definitely (?P<code>down|up) for interface {_INTERFACE}"),
    _line(LINK_CHANGED, "link status definitely", rf"\(slave {_INTERFACE}\): link status definitely (?P<code>down|up)"),
    _line(LINK_CHANGED, "Link DOWN", r"(?P<interface>mlx\w+): Port: \d+ Link DOWN", "down"),
    _line(LINK_CHANGED, "Link ACTIVE", r"(?P<interface>mlx\w+): Port: \d+ Link ACTIVE", "up"),
)
_CRASHES: Final = (
    _line(SEGFAULT, "segfault at", rf"^{_PROCESS}: segfault at .{{0,200}}?(?: in (?P<object>[^\s\[,]{{1,128}})|$)", "segfault"),
    _line(
        SEGFAULT,
        "traps: ",
        rf"^traps: {_PROCESS} general protection.{{0,200}}?(?: in (?P<object>[^\s\[,]{{1,128}})|$)",
        "general_protection",
    ),
    _line(
        SEGFAULT, "traps: ", rf"^traps: {_PROCESS} trap invalid opcode.{{0,200}}?(?: in (?P<object>[^\s\[,]{{1,128}})|$)", "invalid_opcode"
    ),
    _line(KERNEL_OOPS, "Kernel panic", r"Kernel panic - not syncing", "panic"),
    _line(KERNEL_OOPS, "Oops", r"^(?:Oops|Internal error: Oops)\b.{0,120}\[#\d+\]", "oops"),
    _line(KERNEL_OOPS, "BUG: ", r"^BUG: (?:unable to handle|kernel NULL pointer dereference)", "oops"),
    _line(KERNEL_OOPS, "general protection fault", r"^general protection fault,.{0,200}\[#\d+\]", "oops"),
    _line(KERNEL_OOPS, "kernel BUG at", r"^kernel BUG at ", "bug"),
)

LINES: Final = (*_NVIDIA, *_MEMORY, *_HANGS, *_HARDWARE, *_DISKS, *_FILE_SYSTEMS, *_LINKS, *_CRASHES)


def recognise(text: str) -> Recognised | None:
    """What a line of the log tells of; None where that is nothing of ours."""
    for line in LINES:
        if line.hint in text and (found := line.pattern.search(text)):
            groups = {name: value for name, value in found.groupdict().items() if value}
            word = groups.pop("code", "")
            return Recognised(line.kind, line.codes.get(word, word) or line.code, groups)
    return None
