"""What /sys/block says about a disk beside its traffic: errors, state, and which NVMe controller it belongs to."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from exporters.sources.attributes import devices, number, text

_WELL: Final = frozenset({"running", "live"})
# Disks that come and go in good order: volumes that a cloud lends, disks of virtual machines; behind USB, iSCSI, Fibre Channel, NVMe-oF.
_LENT: Final = re.compile(r"elastic block|persistentdisk|nvme_card-pd|blockvolume|virtual|msft|qemu|vbox", re.I)
_FAR: Final = re.compile(r"/usb\d|/session\d|/rport-|nvme-fabrics")


@dataclass(frozen=True, slots=True)
class Block:
    """`errors` counts the commands that ended with an error (SCSI and SATA); `online` is None where the kernel does not say;
    `model` and `wwid`, the disk's own name, are "" where it does not. `fixed`: it is part of the machine, not lent to it for a while."""

    errors: int | None
    online: bool | None
    model: str
    wwid: str
    fixed: bool


class Blocks:
    """Reads what /sys/block says. A disk's model is read once, and anew when another disk has come under its name. `sys` is the root,
    /sys on a live machine."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._models: dict[str, tuple[int, _Who]] = {}  # by name: the kernel's number of the device's folder, and what was read there

    def of(self, name: str) -> Block:
        """The disk `name` (as in diskstats)."""
        device = f"{self._sys}/block/{name.replace('/', '!')}/device"
        state = text(f"{device}/state")
        who = self._who(name, device)
        online = None if not state else state in _WELL
        return Block(number(f"{device}/ioerr_cnt"), online, who.model, who.wwid, who.fixed)

    def keep(self, names: Iterable[str]) -> None:
        """Forgets the disks that are not among `names`."""
        self._models = {name: self._models[name] for name in names if name in self._models}

    def _who(self, name: str, device: str) -> "_Who":
        try:
            folder = os.stat(device).st_ino  # a device that the kernel finds has a number of its own
        except OSError:
            return _NOBODY
        known = self._models.get(name)
        if known is None or known[0] != folder or not known[1].model:
            known = self._models[name] = (folder, _read(device))
        return known[1]


class _Who(NamedTuple):
    model: str
    wwid: str
    fixed: bool


_NOBODY: Final = _Who("", "", False)


def _read(device: str) -> _Who:
    model = text(f"{device}/model") or ""
    wwid = text(f"{device}/wwid") or text(f"{device.removesuffix('/device')}/wwid") or ""
    fixed = bool(model) and not _LENT.search(model) and not _FAR.search(os.path.realpath(device))
    return _Who(model, wwid, fixed)


def controllers(sys: Path) -> list[str]:
    """The NVMe controllers of this machine: "nvme0", in order; none of disks elsewhere (fabrics), whose health is not ours.

    Raises OSError where the kernel's list cannot be read.
    """
    names = devices(sys / "class/nvme")
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
