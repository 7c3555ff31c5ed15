"""Names of block devices."""

import re
from pathlib import Path
from typing import Final

_PARTITION: Final = re.compile(r"((?:nvme\d+n\d+|mmcblk\d+|nbd\d+|loop\d+|md\d+)(?=p\d+$)|(?:sd|vd|xvd|hd)[a-z]+(?=\d+$))p?\d+$")


def whole(name: str) -> str:
    """The disk that a partition is part of: "nvme0n1" of "nvme0n1p2", "sda" of "sda1"; other names as they are."""
    found = _PARTITION.match(name)
    return found[1] if found else name


def number(sys: Path, name: str) -> str:
    """major:minor of a block device, "" where the kernel does not tell. `sys` is /sys."""
    try:
        return (sys / "class/block" / name.replace("/", "!") / "dev").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
