"""Whether this machine has NVIDIA's library. The module that speaks to it is large, and is loaded only where it has something to do."""

from ctypes import CDLL

from exporters.sources.accelerator import Driver

NAME = "libnvidia-ml.so.1"


def load() -> Driver | None:
    """The driver; None where its library is not there."""
    try:
        CDLL(NAME)
    except OSError:
        return None
    from exporters.sources.nvml import Nvml

    return Nvml()
