"""Asks what may never answer, each question in its own thread: file systems and disks' controllers.

Run as a program (by `mounts.ChildProbes`, without site packages) it is the child process that may get
stuck in the agent's place: a thread in uninterruptible sleep would keep the agent from ending. Its argument
is what it asks: `statvfs` how full a file system is, `write` whether a small file can be written to a folder,
`nvme` a controller's health, `folder` what we may do in one, `quota` how much may be kept there. It reads one JSON text a line, a path,
and writes one JSON array a line: path, seconds, error, errno, then what was found. Standard library only, and none of our packages.
"""

import ctypes
import errno
import fcntl
import json
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeVar

DENIED = "permission denied"  # the error of what its owner alone may ask: that says nothing about its health
SIZE = 1 << 16  # bytes of the file that `write` writes
SMART_SIZE = 512  # bytes of NVMe's SMART / Health log page

IDLE: Final = 60.0  # seconds for which a thread of the child process waits for another question: longer than between two passes

T = TypeVar("T")


class Usage(NamedTuple):
    """Bytes and inodes of a file system; `free` is for users that are not root."""

    size: int
    free: int
    inodes: int
    inodes_free: int


class Written(NamedTuple):
    """Seconds that it took to create and write the small file, to have it on stable storage, to read it back, and to delete it."""

    write: float
    sync: float
    read: float
    delete: float


class Smart(NamedTuple):
    """NVMe's SMART / Health log page, as hexadecimal digits."""

    page: str


class Standing(NamedTuple):
    """Whether a path is a folder, and whether we may write there."""

    folder: bool
    writable: bool


class Quota(NamedTuple):
    """What may be kept by `of` ("user 1000", "group 100", "project 7", "folder"), and what is: bytes and files. None is no limit."""

    of: str
    used: int
    limit: int | None
    files: int
    files_limit: int | None


class Quotas(NamedTuple):
    """The quotas that bound what is written to a folder."""

    found: tuple[Quota, ...]


class Answer(NamedTuple, Generic[T]):
    """What became of one probe: what was `found`, or None with the `error` and its number (0 where it has none); `seconds` is how
    long it took."""

    path: str
    seconds: float
    error: str
    found: T | None
    errno: int = 0


def statvfs(path: str) -> Usage:
    """Asks the kernel. Raises OSError; may never return."""
    s = os.statvfs(path)
    return Usage(s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize, s.f_files, s.f_favail)


def standing(path: str) -> Standing:
    """Asks the kernel; writes nothing. Raises OSError; may never return."""
    return Standing(stat.S_ISDIR(os.stat(path).st_mode), os.access(path, os.W_OK | os.X_OK))


def write(folder: str) -> Written:
    """Writes a small file to `folder`, has it stored, reads it back and deletes it. Raises OSError; may never return.

    The file bears the machine's name, so that the nodes that share a file system do not meet; what an earlier probe left is replaced.
    """
    name = os.path.join(folder, f".surefoot-probe-{os.uname().nodename}")
    with suppress(FileNotFoundError):
        os.unlink(name)
    data = os.urandom(SIZE)
    times = [time.monotonic()]
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, data)
        times.append(time.monotonic())
        os.fsync(fd)
        times.append(time.monotonic())
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # else it is read from memory
        back = os.pread(fd, SIZE, 0)
        times.append(time.monotonic())
    finally:
        with suppress(OSError):  # the error that counts is the first
            os.close(fd)
        os.unlink(name)
    times.append(time.monotonic())
    if back != data:
        raise OSError(errno.EIO, "what was read back is not what was written", folder)
    return Written(*(later - earlier for earlier, later in pairwise(times)))


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


class _AdminCommand(ctypes.Structure):
    """struct nvme_admin_cmd of <linux/nvme_ioctl.h>."""

    _fields_ = (
        ("opcode", ctypes.c_uint8),
        ("flags", ctypes.c_uint8),
        ("rsvd1", ctypes.c_uint16),
        ("nsid", ctypes.c_uint32),
        ("cdw2", ctypes.c_uint32),
        ("cdw3", ctypes.c_uint32),
        ("metadata", ctypes.c_uint64),
        ("addr", ctypes.c_uint64),
        ("metadata_len", ctypes.c_uint32),
        ("data_len", ctypes.c_uint32),
        *((f"cdw{n}", ctypes.c_uint32) for n in range(10, 16)),
        ("timeout_ms", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
    )


def smart_command(address: int) -> _AdminCommand:
    """Get Log Page (opcode 2) of the SMART / Health log (page 2) of the whole controller, to `address`."""
    words = SMART_SIZE // 4 - 1  # the length is given as the number of 32-bit words, less one
    return _AdminCommand(opcode=2, nsid=0xFFFFFFFF, addr=address, data_len=SMART_SIZE, cdw10=words << 16 | 2)


def smart(controller: str) -> Smart:
    """The health log of the NVMe controller whose device file is `controller`. Raises OSError; may take long. For root."""
    ioctl = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_admin_cmd)
    page = ctypes.create_string_buffer(SMART_SIZE)
    fd = os.open(controller, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = fcntl.ioctl(fd, ioctl, bytearray(smart_command(ctypes.addressof(page))), True)
    finally:
        os.close(fd)
    if status:
        raise OSError(errno.EIO, f"the controller answered with status {status:#x}", controller)
    return Smart(page.raw.hex())


class _DiskQuota(ctypes.Structure):
    """struct if_dqblk of <linux/quota.h>. Limits are in blocks of 1 KiB, 0 is none; `space` is bytes."""

    _fields_ = (
        ("hard", ctypes.c_uint64),
        ("soft", ctypes.c_uint64),
        ("space", ctypes.c_uint64),
        ("files_hard", ctypes.c_uint64),
        ("files_soft", ctypes.c_uint64),
        ("files", ctypes.c_uint64),
        ("grace", ctypes.c_uint64),
        ("files_grace", ctypes.c_uint64),
        ("valid", ctypes.c_uint32),
    )


def quotas(folder: str) -> Quotas:
    """The quotas, where any is set, of who owns the folder and of its project (ext4, XFS), or of the folder itself (CephFS).

    Those of root are none. Raises OSError; may never return. For root, but for the caller's own.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        owner = os.fstat(fd)
        asked = [("user", owner.st_uid), ("group", owner.st_gid), ("project", _project(fd))]
        found = [_quota(fd, kind, f"{of} {number}", number) for kind, (of, number) in enumerate(asked) if number]
        return Quotas(tuple(one for one in (*found, _of_folder(folder)) if one is not None))
    finally:
        os.close(fd)


def _quota(fd: int, kind: int, of: str, number: int) -> Quota | None:
    get, quotactl_fd = 0x800007, 443  # Q_GETQUOTA; the call's number is the same on all architectures, since Linux 5.14
    told = _DiskQuota()
    if ctypes.CDLL(None, use_errno=True).syscall(quotactl_fd, fd, get << 8 | kind, number, ctypes.byref(told)):
        return None  # quotas are not kept here, or are not ours to see: neither is a fault
    limit, files_limit = told.hard or told.soft, told.files_hard or told.files_soft
    if not limit and not files_limit:
        return None
    return Quota(of, told.space, limit * 1024 or None, told.files, files_limit or None)


def _project(fd: int) -> int:
    """The project that what is made in the folder belongs to, 0 for none."""
    attributes = bytearray(28)  # struct fsxattr: its fourth word of 32 bits is the project
    try:
        fcntl.ioctl(fd, 0x801C581F, attributes, True)  # FS_IOC_FSGETXATTR
    except OSError:
        return 0
    return int.from_bytes(attributes[12:16], sys.byteorder)


def _of_folder(folder: str) -> Quota | None:
    def told(name: str) -> int | None:
        try:
            return int(os.getxattr(folder, f"ceph.{name}"))
        except (OSError, ValueError):
            return None

    limit, files_limit = told("quota.max_bytes"), told("quota.max_files")
    if not limit and not files_limit:
        return None
    return Quota("folder", told("dir.rbytes") or 0, limit or None, told("dir.rentries") or 0, files_limit or None)


class ThreadProbes(Generic[T]):
    """Probes in daemon threads of this process: one for each `ask` that has not been answered. A thread that
    has answered waits `idle` seconds for another question."""

    def __init__(self, probe: Callable[[str], T], idle: float = 0.0) -> None:
        self._probe, self._idle = probe, idle
        self._answers: SimpleQueue[Answer[T]] = SimpleQueue()
        self._orders: SimpleQueue[str] = SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0  # threads that wait for an order which nobody has given yet

    def ask(self, path: str) -> None:
        """Begins to probe `path`; the answer comes from `answers` if it ever comes."""
        with self._lock:
            taken = self._free > 0
            self._free -= taken
        self._orders.put(path)
        if not taken:
            threading.Thread(target=self._work, name="probe", daemon=True).start()

    def answers(self, timeout: float) -> list[Answer[T]]:
        """The answers that are there, after waiting at most `timeout` seconds for the first."""
        found: list[Answer[T]] = []
        try:
            found.append(self._answers.get(timeout=max(timeout, 0.0)))
            while True:
                found.append(self._answers.get_nowait())
        except Empty:
            return found

    def close(self) -> None:
        """Threads that hang are left behind."""

    def _work(self) -> None:
        while (path := self._next()) is not None:
            answer = self._answer(path)
            with self._lock:
                self._free += 1
            self._answers.put(answer)

    def _next(self) -> str | None:
        """A question, the first one too: a thread that had just answered may have taken it. None where the thread may end. `_free` says
        how many may: for each of the others comes an order."""
        try:
            return self._orders.get(timeout=self._idle)
        except Empty:
            with self._lock:
                if self._free:
                    self._free -= 1
                    return None
            return self._orders.get()

    def _answer(self, path: str) -> Answer[T]:
        began = time.monotonic()
        found: T | None = None
        error, number = "", 0
        try:
            found = self._probe(path)
        except PermissionError as e:
            error, number = DENIED, e.errno or 0
        except (OSError, ValueError) as e:  # ValueError: a path that cannot be one
            error, number = str(e), getattr(e, "errno", None) or 0
        return Answer(path, time.monotonic() - began, error, found, number)


WAYS: dict[str, Callable[[str], Any]] = {"statvfs": statvfs, "write": write, "nvme": smart, "folder": standing, "quota": quotas}


def main() -> None:
    """Answers until standard input ends, then leaves at once, whatever still hangs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the agent, and our standard input with it
    probes = ThreadProbes(WAYS[sys.argv[1]], IDLE)
    threading.Thread(target=_write_answers, args=(probes,), daemon=True).start()
    for line in sys.stdin:
        probes.ask(json.loads(line))
    os._exit(0)


def _write_answers(probes: ThreadProbes[Any]) -> None:
    while True:
        for answer in probes.answers(60.0):
            line = json.dumps([answer.path, answer.seconds, answer.error, answer.errno, *(answer.found or ())])
            os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main()
