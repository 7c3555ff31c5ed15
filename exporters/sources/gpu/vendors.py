"""Who makes accelerators that we read. A further vendor is a file with its driver, and a line here."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from exporters.sources.gpu import amdgpu, ascend, nvml_library
from exporters.sources.gpu.accelerator import Driver


class Vendor(NamedTuple):
    """A vendor's name, its name for people, its id on the PCI bus, and what gives its driver (None: not installed; roots are /proc, /sys).

    `listing`: seconds that its driver may take to list its devices, where that is more than others'.
    """

    name: str
    title: str
    pci: int
    load: Callable[[Path, Path], Driver | None]
    listing: float = 0.0


VENDORS: Final = (
    Vendor("nvidia", "NVIDIA", 0x10DE, lambda proc, sys: nvml_library.load(proc)),
    Vendor("amd", "AMD", amdgpu.VENDOR, lambda proc, sys: amdgpu.load(sys)),
    Vendor("huawei", "Ascend", ascend.VENDOR, lambda proc, sys: ascend.load(), listing=4.0),
)
