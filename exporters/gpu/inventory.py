"""Which GPUs a node has, over losses of a GPU, shifted indices and restarts of the agent. Pure.

What is kept is words to numbers: "gpu.seen/VENDOR/UUID/PCI" is the hour (since 1970) in which it was last there, 0 once it is given up;
"gpu.lost/UUID" is twice how often it was lost, and one more while it is.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from exporters.sources.gpu.accelerator import Device

SEEN, LOST = "gpu.seen", "gpu.lost"
FORGET: Final = 24  # hours for which a GPU that is gone is missed: after that it was taken out
_HOUR: Final = 3600.0


class Inventory:
    """The GPUs of one vendor's driver that should be there. `kept` is what the agent before it kept."""

    def __init__(self, kept: Mapping[str, int], vendor: str) -> None:
        self._devices: dict[str, Device] = {}
        self._seen: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._given_up: set[str] = set()
        for device, hour in _remembered(kept):
            if device.vendor == vendor:
                self._devices[device.uuid], self._seen[device.uuid] = device, hour
        self._told = {uuid: kept.get(f"{LOST}/{uuid}", 0) for uuid in self._devices}

    def there(self, devices: Iterable[Device], now: float) -> None:
        """Takes note of what the driver lists at `now` (seconds since 1970). Another GPU in a place has replaced the one before."""
        hour = int(now // _HOUR)
        for device in devices:
            for other in [one for one in self._devices.values() if one.pci and one.pci == device.pci and one.uuid != device.uuid]:
                self._drop(other)
            self._devices[device.uuid], self._seen[device.uuid] = device, hour
        for device in [one for one in self._devices.values() if hour - self._seen[one.uuid] > FORGET]:
            self._drop(device)

    def expect(self, devices: Iterable[Device], now: float) -> None:
        """Takes note of what should be there, by another source than the driver's list; what is known already stays."""
        taken = {device.pci for device in self._devices.values()}
        for device in devices:
            if device.uuid not in self._devices and device.pci not in taken:
                self._devices[device.uuid], self._seen[device.uuid] = device, int(now // _HOUR)

    def device(self, uuid: str) -> Device:
        """What is known of a GPU that is known."""
        return self._devices[uuid]

    def uuids(self) -> list[str]:
        """All GPUs that should be there."""
        return list(self._devices)

    def lost(self, uuid: str) -> int | None:
        """Takes note that it is lost: which loss of it this is, from 1, where that is new; else None."""
        told = self._told.get(uuid, 0)
        if told % 2:
            return None
        self._told[uuid] = told + 1
        return told // 2 + 1

    def found(self, uuid: str) -> None:
        """Takes note that it answers."""
        told = self._told.get(uuid, 0)
        self._told[uuid] = told + told % 2

    def kept(self) -> dict[str, int]:
        """What the next agent is to know."""
        kept = {_key(device): self._seen[uuid] for uuid, device in self._devices.items()}
        kept |= {key: 0 for key in self._given_up - kept.keys()}
        return kept | {f"{LOST}/{uuid}": told for uuid, told in self._told.items() if told}

    def _drop(self, device: Device) -> None:
        del self._devices[device.uuid]
        self._told[device.uuid] = self._told.get(device.uuid, 0) // 2 * 2
        self._given_up.add(_key(device))


def addresses(kept: Mapping[str, int]) -> dict[str, str]:
    """UUIDs by PCI address, of what an agent kept."""
    return {device.pci: device.uuid for device, _ in _remembered(kept) if device.pci}


def _remembered(kept: Mapping[str, int]) -> list[tuple[Device, int]]:
    """The devices that were kept, each with its hour."""
    parts = [(key.split("/"), hour) for key, hour in kept.items() if hour]
    return [(Device(words[2], words[3], vendor=words[1]), hour) for words, hour in parts if len(words) == 4 and words[0] == SEEN]


def _key(device: Device) -> str:
    return "/".join((SEEN, device.vendor, device.uuid.replace("/", "_"), device.pci))
