"""PCI addresses in one form: NVML, sysfs, the kernel log and npu-smi write the same address in different ways."""

import os
import re
from pathlib import Path
from typing import Final

DISPLAY: Final = (0x0300, 0x0302, 0x1200)  # classes: VGA and 3D controllers, processing accelerators
_ADDRESS: Final = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.I)


def normal(address: str) -> str:
    """`address` as sysfs has it, "0000:3b:00.0": lower case, a domain of four digits at least, a function.

    NVML writes "00000000:3B:00.0", the driver's log lines "0000:3b:00" without a function. "" for what is no PCI address.
    """
    found = _ADDRESS.fullmatch(address.strip().removeprefix("PCI:"))
    if found is None:
        return ""
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}" if device < 32 else ""


class Bus:
    """What the kernel found on the bus, read once a device: of one that is listed again, only that it is."""

    def __init__(self, sys: Path) -> None:
        self._root = sys / "bus/pci/devices"
        self._known: dict[tuple[str, int], tuple[int | None, int]] = {}  # vendor and class, by name and the kernel's number of its entry

    def has(self, vendor: int, classes: tuple[int, ...] = DISPLAY) -> bool:
        """Is there a device that `vendor` made and that is of one of `classes`, now?"""
        try:
            with os.scandir(self._root) as listed:
                there = [(one.name, one.inode()) for one in listed]
        except OSError:
            there = []
        self._known = {key: self._known.get(key) or self._read(key[0]) for key in there}
        return any(maker == vendor and kind in classes for maker, kind in self._known.values())

    def lists(self, address: str) -> bool:
        """Is there a device at `address` now? Also where the kernel's list cannot be read: then nobody can say that it is not."""
        try:
            return address in os.listdir(self._root)
        except OSError:
            return True

    def _read(self, name: str) -> tuple[int | None, int]:
        return _hex(self._root / name / "vendor"), (_hex(self._root / name / "class") or 0) >> 8


def _hex(path: Path) -> int | None:
    """What the file says, as in "0x10de"; None where it says nothing."""
    try:
        return int(path.read_text(encoding="ascii", errors="replace"), 16)
    except (OSError, ValueError):
        return None
