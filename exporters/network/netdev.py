"""Network interfaces: link, traffic, errors, pauses."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from exporters.best import Best
from exporters.collector import Reading, Site
from exporters.sources.network import ethtool, infiniband, netdev
from exporters.sources.network.ethtool import Pauses
from exporters.sources.network.netdev import Interface
from pipeline.catalog.metrics import NETDEV

_SYS: Final = Path("/sys")

STATISTICS: Final[Mapping[str, str]] = {
    "netdev.received": "rx_bytes",
    "netdev.sent": "tx_bytes",
    "netdev.received.packets": "rx_packets",
    "netdev.sent.packets": "tx_packets",
    "netdev.receive_errors": "rx_errors",
    "netdev.send_errors": "tx_errors",
    "netdev.receive_drops": "rx_dropped",
    "netdev.send_drops": "tx_dropped",
    "netdev.crc_errors": "rx_crc_errors",
    "netdev.missed": "rx_missed_errors",
}


class NetdevCollector:
    """A reading for each interface that is a device or a bond."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._best = Best("netdev", site.kept)
        self._statistics = site.ethtool or _drivers(site.sys)

    def absent(self) -> str:
        """No interface that is a device."""
        return "no network interface that is a device"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The interfaces' readings; none where there is none."""
        ports = infiniband.ports_of_netdevs(self._site.sys)
        for one in netdev.interfaces(self._site.sys, STATISTICS.values()):
            values = _values(one, ethtool.pauses(self._statistics(one.name)))
            values["netdev.speed.best"] = self._best.of(one.name, one.speed if one.carrier else None)
            yield Reading(NETDEV, {"node": self._site.node, "netdev": one.name}, values, _attributes(one, ports.get(one.name, "")))

    def kept(self) -> Mapping[str, int]:
        """The highest speeds."""
        return self._best.kept()


def _drivers(sys: Path) -> Callable[[str], Mapping[str, int]]:
    """The kernel knows nothing of the interfaces in another tree than its own."""
    return ethtool.Statistics().of if sys == _SYS else lambda interface: {}


def _values(one: Interface, pauses: Pauses) -> dict[str, float | int | None]:
    return {
        "netdev.carrier": one.carrier,
        "netdev.speed": one.speed,
        "netdev.carrier_changes": one.changes,
        **{ours: one.statistics.get(name) for ours, name in STATISTICS.items()},
        "netdev.pauses.received": pauses.received,
        "netdev.pauses.sent": pauses.sent,
        "netdev.pauses.received.time": pauses.received_seconds,
        "netdev.pauses.sent.time": pauses.sent_seconds,
        "netdev.symbol_errors": pauses.symbol_errors,
        "netdev.port_discards": pauses.discards,
    }


def _attributes(one: Interface, port: str) -> dict[str, str]:
    """`port` is the RDMA port on it: that one's rules tell of its link."""
    told = {"driver": one.driver, "pci": one.address, "port": port, "kind": "bond" if one.bond else ""}
    return {key: word for key, word in told.items() if word}
