"""Calls of the kernel that Python has no words for yet: unshare(2), mount(2), umount2(2)."""

import ctypes
import os


def call(name: str, *arguments: object, about: str | None = None) -> None:
    """Call `name` of the C library. Raises OSError, which names the path `about`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)
