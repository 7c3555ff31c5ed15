"""Small file systems that only this process and what it starts can see. Linux; for root.

A mount namespace ends with its last process: whatever becomes of a drill, nothing stays mounted.
"""

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from surefoot.drill import kernel

_CLONE_NEWNS: Final = 0x0002_0000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 32, 1 << 14, 1 << 18
_MNT_DETACH: Final = 2
_FILLER: Final = "what-fills-it"
_CHUNK: Final = 1 << 20
_BUSY_SECONDS: Final = 10.0  # in which whoever writes a file there must be done with it
_BUSY_LOOK: Final = 0.01


def unshare() -> None:
    """A mount namespace of our own, from which nothing gets out. Raises OSError."""
    kernel.call("unshare", _CLONE_NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """A tmpfs of `size` bytes at `folder`, taken away with the block, whoever still uses it. Raises OSError."""
    _mount("surefoot-drill", str(folder), "tmpfs", 0, f"size={size}")
    try:
        yield
    finally:
        with suppress(OSError):
            kernel.call("umount2", os.fsencode(folder), _MNT_DETACH)


def fill(folder: Path) -> int:
    """Write a file into `folder` until nothing more fits; gives its bytes."""
    written, chunk = 0, bytes(_CHUNK)
    with (folder / _FILLER).open("ab", buffering=0) as out:
        while chunk:
            try:
                written += out.write(chunk)
            except OSError as e:
                if e.errno != errno.ENOSPC:
                    raise
                chunk = chunk[: len(chunk) // 2]
    return written


def empty(folder: Path) -> None:
    """Take away what `fill` wrote."""
    (folder / _FILLER).unlink(missing_ok=True)


def remount(folder: Path, *, read_only: bool, pause: Callable[[float], object] = time.sleep) -> None:
    """Remount what is at `folder`, once nobody has a file open there for writing. Raises OSError."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            _mount(None, str(folder), None, _MS_REMOUNT | (_MS_RDONLY if read_only else 0), None)
        except OSError as e:
            if e.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        else:
            return
        pause(_BUSY_LOOK)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    kernel.call("mount", *words[:3], ctypes.c_ulong(flags), words[3], about=target)
