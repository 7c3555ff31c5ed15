"""Who makes accelerators that we read. A further vendor is a file with its driver, and a line here."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from exporters.sources import amdgpu, ascend, nvml_library
from exporters.sources.accelerator import Driver


class Vendor(NamedTuple):
    """A vendor's name, its id on the PCI bus, and what gives its driver, None where it is not installed (roots are /proc and /sys).

    `listing`: seconds that its driver may take to list its devices, where that is more than others'.
    """

    name: str
    pci: int
    load: Callable[[Path, Path], Driver | None]
    listing: float = 0.0


VENDORS: Final = (
    Vendor("nvidia", 0x10DE, lambda proc, sys: nvml_library.load(proc)),
    Vendor("amd", amdgpu.VENDOR, lambda proc, sys: amdgpu.load(sys)),
    Vendor("huawei", ascend.VENDOR, lambda proc, sys: ascend.load(), listing=4.0),
)
