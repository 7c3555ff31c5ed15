"""NVIDIA GPUs: each read in a thread of its own, so that one whose driver calls hang costs its own readings only."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from exporters.collector import Observation, Site
from exporters.gpu_inventory import Inventory
from exporters.gpu_readings import Readings, lost_event
from exporters.sources import nvml_library, pci, procfs
from exporters.sources.accelerator import Device, Driver, Found, Lost, NoDriver, Roll, Seen
from exporters.sources.calls import Calls
from pipeline.clock import monotonic

EVERY: Final = 5.0  # seconds between two readings: a GPU that hangs or is lost is to be known within ten
Load = Callable[[], Driver | None]
_ROLL: Final = "roll"
_PATIENCE: Final = 10.0  # seconds after which a driver that does not even list its GPUs hangs; loading one takes its time


class GpuCollector:
    """A reading for each GPU, its links, partitions and processes, and an event for each that is lost."""

    def __init__(
        self,
        site: Site,
        load: Callable[[], Driver | None] = nvml_library.load,
        clock: Callable[[], float] = monotonic,
        vendor: str = "nvidia",
    ) -> None:
        self._site, self._load, self._clock, self._vendor = site, load, clock, vendor
        self._driver: Driver | None = None
        self._inventory = Inventory(site.kept, vendor)
        self._readings = Readings(site)
        self._boot = procfs.boot_id(site.proc)
        self._rolls: Calls[Roll | None] = Calls(f"{vendor}-{_ROLL}", clock)
        self._reads: Calls[Seen] = Calls(vendor, clock)
        self._found: Mapping[str, Found] = {}
        self._renewing = False  # whether the driver's library is being started again: then no handle of before is good

    def absent(self) -> str:
        """No driver, or no GPU that it knows."""
        if self._rolls.hung(_ROLL) is not None or self._inventory.uuids():
            return ""
        kind = {"nvidia": "NVIDIA"}.get(self._vendor, self._vendor)
        return f"no {kind} GPU" if self._driver else f"no {kind} driver"

    def collect(self, now: datetime) -> Iterator[Observation]:
        """The GPUs' readings, within the site's time for probes. Nothing where there is no such GPU. Raises OSError where the
        driver of a machine that has GPUs cannot be asked."""
        began = self._clock()
        end = began + self._site.probe_timeout
        answered = self._call_the_roll(now, began + self._site.probe_timeout / 2)
        if not answered and not self._found and not self._inventory.uuids():
            if self._rolls.hung(_ROLL) is not None:
                raise OSError("the GPU driver does not answer")
            return
        stuck_at = self._driver.asking if self._driver and not answered else ""
        asked = {
            uuid: self._clock()
            for uuid, one in self._found.items()
            if one.device.index != stuck_at and (answered or not self._renewing) and self._reads.begin(uuid, self._reader(one))
        }
        took = {uuid: (seen, self._clock() - asked[uuid]) for uuid, seen in self._reads.wait(asked, end).items()}
        yield from self._tell(now, answered, took, self._rolls.hung(_ROLL))

    def kept(self) -> Mapping[str, int]:
        """The GPUs that should be there, for the next agent."""
        return self._inventory.kept()

    def _call_the_roll(self, now: datetime, until: float) -> bool:
        """Asks which GPUs there are; False where the driver has not said, or is not there. Raises OSError."""
        if self._rolls.hung(_ROLL) is None:
            self._renewing = self._reads.idle and any(uuid not in self._found for uuid in self._inventory.uuids())
        renew = self._renewing
        hanging = frozenset(one.device.index for uuid, one in self._found.items() if self._reads.hung(uuid) is not None)
        if not self._rolls.begin(_ROLL, lambda: self._roll(renew, hanging)):
            return False
        outcome = self._rolls.wait((_ROLL,), until).get(_ROLL)
        if isinstance(outcome, Exception):
            self._found = {}
            if isinstance(outcome, NoDriver) and not self._inventory.uuids() and not pci.of_vendor(self._site.sys, pci.NVIDIA):
                return False  # the library is installed where there is no GPU
            raise outcome
        if outcome is None:
            if self._rolls.hung(_ROLL) is None:
                self._found = {}
                if self._inventory.uuids():
                    raise OSError("the GPU driver's library is gone")
            return False
        self._found = {one.device.uuid: one for one in outcome.found}
        self._inventory.there((one.device for one in outcome.found), now.timestamp())
        return True

    def _roll(self, renew: bool, hanging: frozenset[str]) -> Roll | None:
        self._driver = self._driver or self._load()
        return None if self._driver is None else self._driver.roll(renew=renew, hanging=hanging)

    def _reader(self, found: Found) -> Callable[[], Seen]:
        driver = self._driver
        assert driver is not None  # it has found the GPU
        return lambda: driver.read(found)

    def _tell(
        self, now: datetime, answered: bool, took: Mapping[str, tuple[Seen | Exception, float]], listing: float | None
    ) -> Iterator[Observation]:
        for uuid in self._inventory.uuids():
            device = self._inventory.device(uuid)
            outcome, seconds = took.get(uuid, (None, 0.0))
            hung = self._reads.hung(uuid)
            if isinstance(outcome, Seen):
                self._inventory.found(uuid)
                yield from self._readings.of(device, outcome, seconds)
            elif isinstance(outcome, Lost) or (answered and uuid not in self._found):
                yield self._readings.down(device)
                yield from self._lost(now, device)
            elif hung is not None or (listing is not None and self._stuck(device, listing)):
                yield self._readings.hung(device, max(hung or 0.0, listing or 0.0))
            elif isinstance(outcome, OSError):
                yield self._readings.unread(device, seconds)
            elif isinstance(outcome, Exception):
                raise outcome

    def _stuck(self, device: Device, listing: float) -> bool:
        """Whether the call that lists the GPUs hangs at this one, or has hung so long that no GPU can be asked."""
        asking = self._driver.asking if self._driver else ""
        return asking == device.index if asking and device.index else listing >= _PATIENCE

    def _lost(self, now: datetime, device: Device) -> Iterator[Observation]:
        number = self._inventory.lost(device.uuid)
        if number is not None:
            yield lost_event(self._site.node, self._boot, device, number, now)
