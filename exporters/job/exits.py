"""How a process that is not our child ended: read while it is a zombie, or asked of the kernel afterwards."""

import fcntl
import json
import os
import signal
import struct
from pathlib import Path
from typing import Final

from exporters.job.procfs import ZOMBIE, read_stat

# linux/pidfd.h: PIDFD_GET_INFO = _IOWR(0xFF, 11, struct pidfd_info), PIDFD_INFO_EXIT (6.15 and later) = bit 3.
# The structure begins with mask u64, cgroupid u64, eleven u32 ids, exit_code i32: the first 64 bytes, its first published size.
_INFO: Final = struct.Struct("<QQ11Ii")
_GET_INFO: Final = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11
_INFO_EXIT: Final = 1 << 3
_ERROR_LIMIT: Final = 2000  # characters of an error that an event carries


def exit_code(pid: int, start: int, pidfd: int) -> int | None:
    """The exit status of the ended process, negative for a signal; None where it cannot be learnt (any more).

    `start` guards against a later process with the same pid; `pidfd` was opened while the process lived.
    """
    stat = read_stat(pid)
    if stat and stat.start == start and stat.state in ZOMBIE and _readable(pid):
        return os.waitstatus_to_exitcode(stat.wait_status)
    return _from_kernel(pidfd)


def _readable(pid: int) -> bool:
    """Whether /proc shows us the true exit status: of a stranger's process it shows 0."""
    try:
        return os.geteuid() in (0, os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return False


def _from_kernel(pidfd: int) -> int | None:
    """The status of a process that was already waited for; None before Linux 6.15."""
    buffer = bytearray(_INFO.pack(_INFO_EXIT, *(0,) * 13))
    try:
        fcntl.ioctl(pidfd, _GET_INFO, buffer)
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(buffer)
    return os.waitstatus_to_exitcode(status) if mask & _INFO_EXIT else None


def signal_name(code: int | None) -> str:
    """ "SIGKILL" for -9; "" where the process was not ended by a signal."""
    if code is None or code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:  # real-time signals have no name
        return f"SIG{-code}"


def describe(code: int | None) -> str:
    """How a process ended, for people."""
    if code is None:
        return "ended, its exit status is not known"
    return f"killed by {signal_name(code)}" if code < 0 else f"exited with {code}"


def read_error_file(path: str) -> str:
    """The message in torchrun's error file of a rank; "" where there is none or it holds something else."""
    try:
        with Path(path).open("rb") as f:
            message = json.loads(f.read(1 << 20))["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    text = message.get("message", "") if isinstance(message, dict) else message
    return text[:_ERROR_LIMIT] if isinstance(text, str) else ""
