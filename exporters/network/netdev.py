"""Network interfaces: link, traffic, errors, pauses."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from exporters.best import Best
from exporters.collector import Reading, Site
from exporters.missed import Missed
from exporters.sources.attributes import driven
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
        self._missed = Missed("netdev", site.kept)
        self._known: dict[str, Mapping[str, str]] = {}  # what else was known of each interface
        self._statistics = site.ethtool or _drivers(site.sys)

    def absent(self) -> str:
        """No interface that is a device."""
        return "no network interface that is a device"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The interfaces' readings, also of one that had a link and that the kernel no longer lists; none where there is none."""
        ports = infiniband.ports_of_netdevs(self._site.sys)
        listed: dict[str, str] = {}
        linked = set()
        for one in netdev.interfaces(self._site.sys, STATISTICS.values()):
            values = _values(one, ethtool.pauses(self._statistics(one.name)))
            values["netdev.speed.best"] = self._best.of(one.name, one.speed if one.carrier else None)
            about = self._known[one.name] = _attributes(one, ports.get(one.name, ""))
            listed[one.name] = one.address
            if one.carrier and one.fixed and one.name not in ports:
                linked.add(one.name)
            yield Reading(NETDEV, {"node": self._site.node, "netdev": one.name}, values, about)
        for name, place in self._missed.missing(listed, linked, now.timestamp()).items():
            if not driven(self._site.sys, place):  # one whose driver works is in a container, whose interfaces are not to be seen
                last = self._known.get(name) or ({"pci": place} if place else {})
                yield Reading(NETDEV, {"node": self._site.node, "netdev": name}, {**dict.fromkeys(_NAMES), "netdev.present": 0}, last)

    def kept(self) -> Mapping[str, int]:
        """The highest speeds, and the interfaces that should be there."""
        return {**self._best.kept(), **self._missed.kept()}


_NAMES: Final = tuple(metric.name for metric in NETDEV.metrics)


def _drivers(sys: Path) -> Callable[[str], Mapping[str, int]]:
    """The kernel knows nothing of the interfaces in another tree than its own."""
    return ethtool.Statistics().of if sys == _SYS else lambda interface: {}


def _values(one: Interface, pauses: Pauses) -> dict[str, float | int | None]:
    return {
        "netdev.present": 1,
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
