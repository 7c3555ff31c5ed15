"""What NVMe controllers say about their own health. A controller that does not answer costs one stuck thread of a child process."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources.storage import disks, nvme
from exporters.sources.storage.mounts import Prober
from exporters.sources.storage.nvme import Health
from pipeline.catalog.metrics import DISK_HEALTH

EVERY: Final = 15.0  # seconds; each question is a command to the controller, which is done with it in less than a millisecond


class DiskHealthCollector:
    """A reading for each NVMe controller of this machine."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._prober = Prober(site.smarts(), site.probe_timeout)

    def absent(self) -> str:
        """No NVMe controller."""
        return "" if disks.controllers(self._site.sys) else "no NVMe controller"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The controllers' readings; none where there is none. Without the right to ask, what the kernel shows: the temperature."""
        names = disks.controllers(self._site.sys)
        asked = {f"/dev/{name}": name for name in names}
        answers = self._prober.probe(asked) if asked else {}
        for path, name in asked.items():
            page = answers[path].found
            health = nvme.health(page.page) if page else None
            values = _values(health, self._site, name)
            if any(value is not None for value in values.values()):  # a virtual disk may have nothing to tell
                disk = disks.disk_of(self._site.sys, name)
                yield Reading(DISK_HEALTH, {"node": self._site.node, "disk": disk}, values, {"controller": name})

    def close(self) -> None:
        """Lets go of the probes."""
        self._prober.close()


def _values(health: Health | None, site: Site, name: str) -> dict[str, float | int | None]:
    shown = disks.temperature(site.sys, name) if health is None or health.temperature is None else health.temperature
    return {
        "disk_health.degraded": int(health.degraded) if health else None,
        "disk_health.hot": int(health.hot) if health else None,
        "disk_health.temperature": shown,
        "disk_health.wear": health.wear if health else None,
        "disk_health.spare": health.spare if health else None,
        "disk_health.spare_limit": health.spare_limit if health else None,
        "disk_health.media_errors": health.media_errors if health else None,
        "disk_health.read": health.read if health else None,
        "disk_health.written": health.written if health else None,
        "disk_health.unsafe_shutdowns": health.unsafe_shutdowns if health else None,
    }
