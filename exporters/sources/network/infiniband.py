"""RDMA devices, as /sys/class/infiniband tells of them, whoever made them. Knows files and units, no metric names.

From the kernel's Documentation/ABI/stable/sysfs-class-infiniband. Each file stands alone: what is absent, refused ("N/A (no PMA)",
EINVAL) or senseless is None, and hurts neither the port's other values nor other devices. `sys` is the root, /sys on a live machine.
"""

import os
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.sources.attributes import devices as names_of
from exporters.sources.attributes import driven, entries, number, uevent, word

WORD: Final = 4  # bytes; the unit of port_xmit_data and port_rcv_data
_IN_WORDS: Final = frozenset({"port_xmit_data", "port_rcv_data"})
_RATE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) Gb/sec\b.*", re.ASCII)
_ENUM: Final = re.compile(r"(\d{1,2}): ?[\w ]*", re.ASCII)
_GIDS: Final = 8  # entries of a port's table that are looked at for its address
_NO_GID: Final = frozenset({"", "0000:0000:0000:0000:0000:0000:0000:0000"})
_LOCAL: Final = "fe80:0000:0000:0000:"


@dataclass(frozen=True, slots=True)
class Port:
    """A port. `rate` is bytes a second; `counters` and `hardware` are by the kernel's names, data in bytes."""

    number: int
    state: int | None
    phys_state: int | None
    rate: float | None
    link_layer: str
    gid: str
    netdev: str
    counters: Mapping[str, int]
    hardware: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Device:
    """A device and its ports. Words that are not known are "". `virtual`: it is a virtual function of another one here."""

    name: str
    firmware: str
    board: str
    model: str
    driver: str
    address: str
    virtual: bool
    ports: tuple[Port, ...]


def devices(sys: Path, wanted: Container[str]) -> Iterator[Device]:
    """The RDMA devices; none where there is no such class. Of `hw_counters` only those in `wanted` are read.

    Raises OSError where the class is there and cannot be read.
    """
    for name in names_of(sys / "class/infiniband"):
        folder = f"{sys}/class/infiniband/{name}"
        told = uevent(f"{folder}/device")
        numbers = [int(entry) for entry in entries(f"{folder}/ports") if entry.isascii() and entry.isdigit() and len(entry) <= 3]
        own = _counts(f"{folder}/hw_counters", wanted) if len(numbers) == 1 else {}  # of several ports nobody knows whose they are
        yield Device(
            name,
            firmware=word(f"{folder}/fw_ver"),
            board=word(f"{folder}/board_id"),
            model=word(f"{folder}/hca_type"),
            driver=told.get("DRIVER", ""),
            address=told.get("PCI_SLOT_NAME", ""),
            virtual=os.path.exists(f"{folder}/device/physfn"),
            ports=tuple(_port(folder, n, own, wanted) for n in sorted(numbers)),
        )


def elsewhere(sys: Path, address: str) -> bool:
    """Whether a device that is not listed may be in a container here: where each network namespace sees its own devices alone."""
    return word(sys / "module/ib_core/parameters/netns_mode") == "N" and driven(sys, address)


def ports_of_netdevs(sys: Path) -> dict[str, str]:
    """Which port (`mlx5_0:1`) lies on which network interface."""
    found = {}
    for name in entries(sys / "class/infiniband"):
        folder = f"{sys}/class/infiniband/{name}"
        for port in entries(f"{folder}/ports"):
            if netdev := _address(folder, port)[1]:
                found[netdev] = f"{name}:{port}"
    return found


def rate(words: str) -> float | None:
    """Bytes a second, of `400 Gb/sec (4X NDR)`; None where it is none."""
    found = _RATE.fullmatch(words)
    return float(found[1]) * 1e9 / 8 or None if found else None


def numbered(words: str) -> int | None:
    """The number of `4: ACTIVE`."""
    found = _ENUM.fullmatch(words)
    return int(found[1]) if found else None


def _port(folder: str, port: int, own: Mapping[str, int], wanted: Container[str]) -> Port:
    here = f"{folder}/ports/{port}"
    gid, netdev = _address(folder, str(port))
    return Port(
        port,
        state=numbered(word(f"{here}/state")),
        phys_state=numbered(word(f"{here}/phys_state")),
        rate=rate(word(f"{here}/rate")),
        link_layer=word(f"{here}/link_layer"),
        gid=gid,
        netdev=netdev,
        counters=_counts(f"{here}/counters", None),
        hardware={**own, **_counts(f"{here}/hw_counters", wanted)},
    )


def _counts(folder: str, wanted: Container[str] | None) -> dict[str, int]:
    found = {}
    for name in entries(folder):
        if wanted is None or name in wanted:
            value = number(f"{folder}/{name}")
            if value is not None:
                found[name] = value * WORD if name in _IN_WORDS else value
    return found


def _address(folder: str, port: str) -> tuple[str, str]:
    """The port's GID, of several one that can be routed over RoCE v2; and the network interface that it lies on."""
    here, best, netdev = f"{folder}/ports/{port}", "", ""
    for index in range(_GIDS):
        gid = word(f"{here}/gids/{index}")
        if gid in _NO_GID:
            continue
        netdev = netdev or word(f"{here}/gid_attrs/ndevs/{index}")
        best = best or gid
        if not gid.startswith(_LOCAL) and word(f"{here}/gid_attrs/types/{index}") == "RoCE v2":
            best = gid
            break
    return best, netdev or _beside(folder, port)


def _beside(folder: str, port: str) -> str:
    """The interface of the same PCI function and port, "" where there is none: that of IP over InfiniBand."""
    names = entries(f"{folder}/device/net")
    mine = [name for name in names if str((number(f"{folder}/device/net/{name}/dev_port") or 0) + 1) == port]
    return mine[0] if len(mine) == 1 else ""
