"""GPUs and other accelerators, whoever made them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from exporters.collector import Observation, Site
from exporters.gpu.vendor import VendorGpus
from exporters.sources.gpu.vendors import VENDORS, Vendor

EVERY: Final = 4.0  # seconds between two readings: a GPU that hangs is to be known within ten, after two looks
_log = logging.getLogger(__name__)


class GpuCollector:
    """The readings and losses of all vendors' GPUs."""

    def __init__(self, site: Site, vendors: Sequence[Vendor] = VENDORS) -> None:
        self._vendors = [VendorGpus(site, vendor) for vendor in vendors]
        self._complained: list[str] = []

    def absent(self) -> str:
        """That no vendor's driver or device is here."""
        told = [vendor.absent() for vendor in self._vendors]
        return "" if "" in told else ", ".join(told)

    def collect(self, now: datetime) -> Iterator[Observation]:
        """What the GPUs of each vendor are like. Raises OSError where nothing could be read for an error."""
        errors: list[OSError] = []
        told = False
        for vendor in self._vendors:
            try:
                for one in vendor.collect(now):
                    told = True
                    yield one
            except OSError as e:
                errors.append(e)
        if errors and not told:
            raise errors[0]
        complaints = [str(error) for error in errors]
        if complaints and complaints != self._complained:
            _log.warning("some GPUs cannot be asked: %s", "; ".join(complaints))
        self._complained = complaints

    def kept(self) -> Mapping[str, int]:
        """The GPUs that should be there, for the next agent."""
        return {key: value for vendor in self._vendors for key, value in vendor.kept().items()}
