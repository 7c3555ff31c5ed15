"""PCI addresses in one form: NVML, sysfs, the kernel log and npu-smi write the same address in different ways."""

import re
from typing import Final

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
