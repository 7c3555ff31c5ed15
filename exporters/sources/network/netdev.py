"""Network interfaces, as /sys/class/net tells of them. Knows files and units, no metric names.

`sys` is the root, /sys on a live machine. What is absent or refused is None: an interface that is switched off has no carrier and no
speed (EINVAL), one without a link the speed -1.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.sources.attributes import devices, number, uevent, word

_MEGABIT: Final = 1e6 / 8  # bytes a second
_LENT: Final = frozenset("ena gve hv_netvsc virtio_net vmxnet3 xen_netfront vif".split())  # clouds' and virtual machines' drivers
_UNKNOWN: Final = (1 << 32) - 1  # the speed that older kernels print for -1


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface. `speed` is bytes a second; `statistics` are the kernel's, by its names; words that are not known are "". `fixed`: it
    is no bond, and none that comes and goes: on USB, or lent to a virtual machine."""

    name: str
    bond: bool
    fixed: bool
    driver: str
    address: str
    carrier: int | None
    speed: float | None
    changes: int | None
    statistics: Mapping[str, int]


def interfaces(sys: Path, wanted: Iterable[str]) -> Iterator[Interface]:
    """The interfaces that are real devices, and bonds; not the virtual functions that a device here has given away. Of the statistics only
    those in `wanted` are read. Raises OSError where the kernel's list cannot be read."""
    for name in devices(sys / "class/net"):
        folder = f"{sys}/class/net/{name}"
        bond = os.path.exists(f"{folder}/bonding")
        if not bond and not os.path.exists(f"{folder}/device"):
            continue
        if os.path.exists(f"{folder}/device/physfn"):
            continue
        told = uevent(f"{folder}/device")
        mbits = number(f"{folder}/speed")
        counts = ((one, number(f"{folder}/statistics/{one}")) for one in wanted)
        yield Interface(
            name,
            bond,
            fixed=not bond and _bus(f"{folder}/device") != "usb" and told.get("DRIVER") not in _LENT,
            driver="bonding" if bond else told.get("DRIVER", ""),
            address=told.get("PCI_SLOT_NAME", ""),
            carrier=_flag(word(f"{folder}/carrier")),
            speed=mbits * _MEGABIT if mbits and mbits < _UNKNOWN else None,
            changes=number(f"{folder}/carrier_changes"),
            statistics={one: count for one, count in counts if count is not None},
        )


def _bus(device: str) -> str:
    try:
        return os.path.basename(os.readlink(f"{device}/subsystem"))
    except OSError:
        return ""


def _flag(word: str) -> int | None:
    return {"0": 0, "1": 1}.get(word)
