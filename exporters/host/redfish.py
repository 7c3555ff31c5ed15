"""The chassis that the node's board sits in: power, inlet temperature and fans, as its management controller tells them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources.redfish import Chassis, Redfish
from pipeline.catalog.metrics import CHASSIS

EVERY: Final = 30.0  # seconds: a controller is slow, and what it tells changes slowly
_SHARE: Final = 0.8  # of the collector's deadline


class RedfishCollector:
    """A reading for each chassis; none where the settings name no controller."""

    def __init__(self, site: Site) -> None:
        self._site = site
        settings = site.settings
        self._source = Redfish(settings.redfish, _SHARE * settings.timeout) if settings.redfish.url else None

    def absent(self) -> str:
        """No controller is named, or it knows of no chassis."""
        return "the controller tells of no chassis" if self._source else "agent.redfish.url names no controller"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The chassis' readings. Raises OSError where the controller does not answer in time."""
        for one in self._source.read() if self._source else ():
            yield self._reading(one)

    def close(self) -> None:
        """Ends the connection."""
        if self._source:
            self._source.close()

    def _reading(self, one: Chassis) -> Reading:
        return Reading(
            CHASSIS,
            {"node": self._site.node, "chassis": one.name},
            {
                "chassis.power": one.power,
                "chassis.power.limit": one.power_limit,
                "chassis.inlet.temperature": one.inlet,
                "chassis.fan.speed": one.fan_speed,
                "chassis.fan.duty": one.fan_share,
                "chassis.fans_failed": one.fans_failed,
                "chassis.healthy": None if one.healthy is None else int(one.healthy),
            },
        )
