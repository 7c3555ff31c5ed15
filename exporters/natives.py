"""Which collector speaks for a device: the one that reads its family here; what another program says counts where it is silent."""

from collections.abc import Sequence

from exporters.encode import Accepted
from exporters.registry import Entry

_Device = tuple[str, tuple[tuple[str, str], ...]]  # family and identity


class Natives:
    """What the collectors showed last, each for as long as it is to be shown."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._owners = {family.name: entry.name for entry in entries for family in entry.families}
        self._shown: dict[str, tuple[float, frozenset[_Device]]] = {}

    def note(self, name: str, readings: Sequence[Accepted], until: float) -> None:
        """The collector `name` shows `readings` until the monotonic second `until`."""
        self._shown[name] = until, frozenset(_device(reading) for reading in readings if self._owners.get(reading.family.name) == name)

    def without(self, name: str, readings: Sequence[Accepted], clock: float) -> list[Accepted]:
        """Those of the collector's readings that no owner of their family has shown of the same device."""
        return [r for r in readings if self._owners.get(r.family.name, name) == name or _device(r) not in self._of(r, clock)]

    def own(self, name: str, readings: Sequence[Accepted], clock: float) -> Sequence[Accepted]:
        """Those whose family nobody else shows now: a page can hold a family once."""
        shown = {family for until, devices in self._shown.values() if clock <= until for family, _ in devices}
        mine = [r for r in readings if self._owners.get(r.family.name, name) == name or r.family.name not in shown]
        return readings if len(mine) == len(readings) else mine

    def _of(self, reading: Accepted, clock: float) -> frozenset[_Device]:
        until, devices = self._shown.get(self._owners[reading.family.name], (0.0, frozenset[_Device]()))
        return devices if clock <= until else frozenset()


def _device(reading: Accepted) -> _Device:
    return reading.family.name, reading.labels[: len(reading.family.identity)]
