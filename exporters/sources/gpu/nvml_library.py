"""Whether this machine has NVIDIA's library. The module that speaks to it is large, and is loaded only where it has something to do."""

from ctypes import CDLL
from pathlib import Path

from exporters.sources.gpu.accelerator import Driver

NAME = "libnvidia-ml.so.1"


def installed() -> bool:
    """Whether the library is there."""
    try:
        CDLL(NAME)
    except OSError:
        return False
    return True


def load(proc: Path) -> Driver | None:
    """The driver of the machine whose /proc is `proc`; None where its library is not there."""
    if not installed():
        return None
    from exporters.sources.gpu.nvml import Nvml

    return Nvml(proc)
