"""PCI addresses in one form: NVML, sysfs, the kernel log and npu-smi write the same address in different ways."""

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


def of_vendor(sys: Path, vendor: int, classes: tuple[int, ...] = DISPLAY) -> list[str]:
    """Addresses of the devices that `vendor` made and that are of one of `classes`, as the kernel found them on the bus."""
    folders = _folders(sys / "bus/pci/devices")
    return sorted(normal(one.name) for one in folders if _hex(one / "vendor") == vendor and (_hex(one / "class") or 0) >> 8 in classes)


def _folders(root: Path) -> list[Path]:
    try:
        return list(root.iterdir())
    except OSError:
        return []


def _hex(path: Path) -> int | None:
    """What the file says, as in "0x10de"; None where it says nothing."""
    try:
        return int(path.read_text(encoding="ascii", errors="replace"), 16)
    except (OSError, ValueError):
        return None
