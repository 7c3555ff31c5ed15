"""What NVIDIA's kernel module says of its GPUs in /proc: also of one that its library no longer names."""

import re
from pathlib import Path
from typing import Final

from exporters.sources.gpu import pci
from exporters.sources.gpu.accelerator import Device

_LINE: Final = re.compile(r"^([A-Za-z ]+):[ \t]*(.*?)[ \t]*$", re.M)
_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # question marks stand in one that was never read


def listed(proc: Path) -> list[Device]:
    """The GPUs whose UUID the module knows. May hang where the driver does."""
    try:
        folders = sorted((proc / "driver/nvidia/gpus").iterdir())
    except OSError:
        return []
    return [device for folder in folders if (device := parse(_text(folder / "information")))]


def parse(text: str) -> Device | None:
    """The GPU that `information` tells of, None where it does not say which one."""
    told = dict(_LINE.findall(text))
    uuid = told.get("GPU UUID", "")
    if not _UUID.fullmatch(uuid):
        return None
    return Device(uuid, pci.normal(told.get("Bus Location", "")), vendor="nvidia", model=told.get("Model", ""))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
