"""What /sys/block says about a disk beside its traffic: errors, state, and which NVMe controller it belongs to."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.sources.attributes import number, text

_WELL: Final = frozenset({"running", "live"})


@dataclass(frozen=True, slots=True)
class Block:
    """`errors` counts the commands that ended with an error (SCSI and SATA); `online` is None where the kernel does not say;
    `model` is "" where it does not."""

    errors: int | None
    online: bool | None
    model: str


def block(sys: Path, name: str) -> Block:
    """The disk `name` (as in diskstats). `sys` is the root, /sys on a live machine."""
    device = sys / "block" / name.replace("/", "!") / "device"
    state = text(device / "state")
    return Block(number(device / "ioerr_cnt"), None if not state else state in _WELL, text(device / "model") or "")


def controllers(sys: Path) -> list[str]:
    """The NVMe controllers of this machine: "nvme0", in order; none of disks elsewhere (fabrics), whose health is not ours."""
    try:
        names = [path.name for path in (sys / "class/nvme").iterdir()]
    except OSError:
        return []
    here = [name for name in names if re.fullmatch(r"nvme\d+", name) and text(sys / "class/nvme" / name / "transport") in (None, "pcie")]
    return sorted(here, key=lambda name: int(name[4:]))


def disk_of(sys: Path, controller: str) -> str:
    """The controller's first disk, under the name that it has everywhere else ("nvme0n1"); the controller's own where it has none.

    Where a disk has several controllers, the kernel names each path to it "nvme0c1n1", and the disk "nvme0n1".
    """
    try:
        names = sorted(path.name for path in (sys / "class/nvme" / controller).iterdir())
    except OSError:
        return controller
    disks = [f"{found[1]}{found[2]}" for name in names if (found := re.fullmatch(r"(nvme\d+)(?:c\d+)?(n\d+)", name))]
    return disks[0] if disks else controller


def temperature(sys: Path, controller: str) -> float | None:
    """Celsius, by the controller's own sensor, where the kernel shows it (hwmon)."""
    folder = sys / "class/nvme" / controller
    for place in (*sorted(folder.glob("hwmon*")), *sorted(folder.glob("hwmon/hwmon*")), *sorted(folder.glob("device/hwmon/hwmon*"))):
        milli = text(place / "temp1_input")
        if milli and re.fullmatch(r"-?\d{1,6}", milli):
            return int(milli) / 1000
    return None
