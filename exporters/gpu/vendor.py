"""The GPUs of one vendor: each read in a thread of its own, so that one whose driver calls hang costs its own readings only."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from exporters.collector import Observation, Site
from exporters.gpu.inventory import Inventory
from exporters.gpu.readings import Readings, lost_event
from exporters.sources import procfs
from exporters.sources.calls import Calls
from exporters.sources.gpu.accelerator import Device, Driver, Found, Lost, NoDriver, Roll, Seen
from exporters.sources.gpu.pci import Bus
from exporters.sources.gpu.vendors import Vendor
from pipeline.clock import monotonic

_ROLL: Final = "roll"
LOOK: Final = 60.0  # seconds between two looks for a driver where the bus shows no device for it: one that hides its bus may have one
_PATIENCE: Final = 10.0  # seconds after which a driver that does not even list its GPUs hangs; loading one takes its time


class VendorGpus:
    """A reading for each GPU of one vendor, its links, partitions and processes, and an event for each that is lost."""

    def __init__(self, site: Site, vendor: Vendor, clock: Callable[[], float] = monotonic) -> None:
        self._site, self._vendor, self._clock = site, vendor, clock
        self._driver: Driver | None = None
        self._bus = Bus(site.sys)
        self._looked: float | None = None  # when no driver was found, monotonic
        self._inventory = Inventory(site.kept, vendor.name)
        self._readings = Readings(site)
        self._boot = procfs.boot_id(site.proc)
        self._rolls: Calls[Roll | None] = Calls(vendor.name, clock)
        self._reads: Calls[Seen] = Calls(vendor.name, clock)
        self._found: Mapping[str, Found] = {}
        self._renewing = False  # whether the driver's library is being started again: then no handle of before is good

    def absent(self) -> str:
        """No driver, or no GPU that it knows; "" where one is, was or may be here."""
        if self._rolls.hung(_ROLL) is not None or self._inventory.uuids() or self._expected():
            return ""
        return f"no {self._vendor.title} device" if self._driver else f"no {self._vendor.title} driver"

    def collect(self, now: datetime) -> Iterator[Observation]:
        """The GPUs' readings, within twice the site's time for probes. Nothing where there is no such GPU.

        Raises OSError where the driver of a machine that has GPUs cannot be asked.
        """
        if self._looked is not None and self._clock() - self._looked < LOOK and not self._expected():
            return
        patience = self._site.probe_timeout / (2 if self._found else 1)  # a driver that is being started takes longer
        try:
            answered = self._call_the_roll(now, self._clock() + max(patience, self._vendor.listing))
        except OSError:
            for device in self._off_the_bus():
                yield from self._gone(now, device)
            raise
        end = self._clock() + self._site.probe_timeout
        if not answered and not self._found and not self._inventory.uuids():
            if self._rolls.hung(_ROLL) is not None and self._expected():
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
        if self._rolls.idle:
            self._renewing = self._reads.idle and any(uuid not in self._found for uuid in self._inventory.uuids())
        renew = self._renewing
        hanging = frozenset(one.device.index for uuid, one in self._found.items() if self._reads.hung(uuid) is not None)
        if not self._rolls.begin(_ROLL, lambda: self._roll(renew, hanging)):
            return False
        outcome = self._rolls.wait((_ROLL,), until).get(_ROLL)
        if isinstance(outcome, Exception):
            self._found = {}
            if isinstance(outcome, NoDriver) and not self._expected():
                return False  # the library is installed where there is no GPU
            raise outcome
        if outcome is None:
            if self._rolls.hung(_ROLL) is None:
                self._found = {}
                self._looked = self._clock()
                if self._inventory.uuids():
                    raise OSError("the GPU driver's library is gone")
            return False
        self._found = {one.device.uuid: one for one in outcome.found}
        self._inventory.there((one.device for one in outcome.found), now.timestamp())
        self._inventory.expect(outcome.expected, now.timestamp())
        return True

    def _expected(self) -> bool:
        """Whether there is, or was, a GPU of this vendor here by what the bus or the agent before says."""
        return bool(self._inventory.uuids()) or self._bus.has(self._vendor.pci)

    def _roll(self, renew: bool, hanging: frozenset[str]) -> Roll | None:
        self._driver = self._driver or self._vendor.load(self._site.proc, self._site.sys)
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
                yield from self._gone(now, device)
            elif hung is not None or (listing is not None and self._stuck(device, listing)):
                yield self._readings.hung(device, max(hung or 0.0, listing or 0.0))
            elif isinstance(outcome, Exception) and not isinstance(outcome, OSError):
                raise outcome
            elif outcome is not None or answered:  # it has returned this moment, too late to be believed
                yield self._readings.unread(device, seconds)

    def _stuck(self, device: Device, listing: float) -> bool:
        """Whether the call that lists the GPUs hangs at this one, or has hung so long that no GPU can be asked."""
        asking = self._driver.asking if self._driver else ""
        return asking == device.index if asking and device.index else listing >= _PATIENCE

    def _off_the_bus(self) -> list[Device]:
        """The GPUs that should be there and that the bus no longer shows: a driver without any may not even start."""
        known = [self._inventory.device(uuid) for uuid in self._inventory.uuids()]
        return [device for device in known if device.pci and not self._bus.lists(device.pci)]

    def _gone(self, now: datetime, device: Device) -> Iterator[Observation]:
        yield self._readings.down(device)
        number = self._inventory.lost(device.uuid)
        if number is not None:
            yield lost_event(self._site.node, self._boot, device, number, now)
