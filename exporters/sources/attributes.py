"""Files of sysfs, each of which holds one value. What is absent or cannot be read hurts nothing else."""

import os
from pathlib import Path
from typing import Final

_LONGEST: Final = 4096  # bytes; sysfs gives no more in one file
_MOST: Final = 1024  # entries of a folder that are looked at


def text(path: str) -> str:
    """What the file says, without blanks around it; "" where it is absent or the kernel refuses it (EINVAL, EOPNOTSUPP)."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        return os.read(opened, _LONGEST).decode(errors="surrogateescape").strip()
    except OSError:
        return ""
    finally:
        os.close(opened)


def number(path: str) -> int | None:
    """The unsigned number that the file holds; None where it holds none, or one beyond 64 bits."""
    word = text(path)
    if not (word.isascii() and word.isdigit() and len(word) <= 20):
        return None
    value = int(word)
    return value if value < 1 << 64 else None


def uevent(folder: str) -> dict[str, str]:
    """What the kernel told of a device when it appeared: `DRIVER`, `PCI_SLOT_NAME` and others."""
    pairs = (line.partition("=") for line in text(f"{folder}/uevent").splitlines())
    return {key: value for key, separator, value in pairs if separator}


def entries(folder: str | Path) -> list[str]:
    """The names in a folder, sorted; none where there is no such folder."""
    try:
        return sorted(os.listdir(folder))[:_MOST]
    except OSError:
        return []
