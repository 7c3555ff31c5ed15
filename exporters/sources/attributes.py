"""Files of the kernel that hold one value, or a table. What is absent, cannot be read or makes no sense hurts nothing else."""

import os
from pathlib import Path
from typing import Final

_LONGEST: Final = 16 << 20  # bytes of a file: more than any attribute or table that we read has
_MOST: Final = 1024  # entries of a folder that are looked at


def contents(path: str | Path) -> str:
    """What the file says; a byte that is no UTF-8 is kept as a surrogate. Read without a file object, half of what a small one costs.

    Raises OSError where it is absent or the kernel refuses it (EINVAL, EOPNOTSUPP), ValueError for a path that cannot be one.
    """
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        left = _LONGEST
        while left > 0 and (part := os.read(opened, min(left, 1 << 16))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts).decode("utf-8", "surrogateescape")
    finally:
        os.close(opened)


def text(path: str | Path) -> str | None:
    """The same without the blanks around it; None where it cannot be had."""
    try:
        return contents(path).strip()
    except (OSError, ValueError):
        return None


def word(path: str | Path) -> str:
    """The same; "" where there is nothing."""
    return text(path) or ""


def number(path: str | Path) -> int | None:
    """The whole number in the file, as `whole` reads it."""
    return whole(text(path))


def whole(told: str | None) -> int | None:
    """`told` as a whole number of at most 64 bits that is not negative, decimal or with 0x before it hexadecimal."""
    if not told or not told.isascii() or len(told) > 40:
        return None
    digits = told.removeprefix("0x")
    if told.isdigit():
        value = int(told)
    elif digits != told and digits and all(c in "0123456789abcdefABCDEF" for c in digits):
        value = int(digits, 16)
    else:
        return None
    return value if value < 1 << 64 else None


def uevent(folder: str) -> dict[str, str]:
    """What the kernel told of a device when it appeared: `DRIVER`, `PCI_SLOT_NAME` and others."""
    pairs = (line.partition("=") for line in word(f"{folder}/uevent").splitlines())
    return {key: value for key, separator, value in pairs if separator}


def driven(sys: Path, address: str) -> bool:
    """Whether a driver works with the PCI device at `address`, "" for none."""
    return bool(address) and os.path.exists(f"{sys}/bus/pci/devices/{address}/driver")


def entries(folder: str | Path) -> list[str]:
    """The names in a folder, sorted; none where there is no such folder."""
    try:
        return devices(folder)
    except OSError:
        return []


def devices(folder: str | Path) -> list[str]:
    """The same, of a folder by which we know what is there at all: one that cannot be read raises OSError, as nothing is known then."""
    try:
        return sorted(os.listdir(folder))[:_MOST]
    except (FileNotFoundError, NotADirectoryError):
        return []
