"""A network driver's own statistics, by the ioctl that `ethtool -S` uses, and what they say of pauses. No privilege is needed."""

import array
import fcntl
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

_SIOCETHTOOL: Final = 0x8946
_SSET_INFO, _STRINGS, _STATS = 0x37, 0x1B, 0x1D  # ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS
_SET: Final = 1  # ETH_SS_STATS
_NAME: Final = 32  # bytes of a name
_IFNAMSIZ: Final = 16
_MOST: Final = 20_000  # statistics that a driver is believed to have: one for each of many queues
_SPARE: Final = 2048  # more that may have come between the question how many there are and the one for them

Ask = Callable[[str, bytearray], None]
"""Has the driver of an interface fill a buffer in place. Raises OSError."""


class Pauses(NamedTuple):
    """Frames, and seconds in which the other side (`received`) or this one (`sent`) made its peer wait; lane errors and drops."""

    received: int | None
    sent: int | None
    received_seconds: float | None
    sent_seconds: float | None
    symbol_errors: int | None
    discards: int | None


# Names of mlx5, bnxt, ice and i40e, as their drivers document them. Priorities and the global pause are counted apart from each other.
_FRAMES: Final = (
    r"{0}_prio\d_pause|{0}_global_pause|{0}_pfc_ena_frames_pri\d|{0}_pause_frames|"
    r"(?:port\.)?{0}_priority_\d_xoff(?:\.nic)?|(?:port\.)?link_xoff_{0}(?:\.nic)?"
)
_MICROSECONDS: Final = r"{0}_prio\d_pause_duration|{0}_global_pause_duration|pfc_pri\d_{0}_duration_us"
_PATTERNS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        *(_FRAMES.format(way) for way in ("rx", "tx")),
        *(_MICROSECONDS.format(way) for way in ("rx", "tx")),
        "rx_pcs_symbol_err_phy",
        "rx_discards_phy|tx_discards_phy",
    )
)


def pauses(statistics: Mapping[str, int]) -> Pauses:
    """What a driver's statistics say, None where they do not."""
    sums: list[int | None] = [None] * len(_PATTERNS)
    for name, value in statistics.items():
        for kind in _kinds(name):
            sums[kind] = (sums[kind] or 0) + value
    return Pauses(sums[0], sums[1], _seconds(sums[2]), _seconds(sums[3]), sums[4], sums[5])


@lru_cache(maxsize=_MOST)
def _kinds(name: str) -> tuple[int, ...]:
    """Which of the patterns a statistic's name fits: a driver has up to thousands, and they are the same at every pass."""
    return tuple(kind for kind, pattern in enumerate(_PATTERNS) if pattern.fullmatch(name))


@dataclass(slots=True)
class Statistics:
    """Asks drivers. Names are asked for again only where their number has changed."""

    ask: Ask | None = None
    _names: dict[str, list[str]] = field(default_factory=dict)

    def of(self, interface: str) -> dict[str, int]:
        """The statistics of an interface by the driver's names; {} where it has none or does not tell."""
        try:
            return self._read(interface, self.ask or _ask)
        except OSError:
            return {}

    def _read(self, interface: str, ask: Ask) -> dict[str, int]:
        many = _count(interface, ask)
        if not many:
            return {}
        if len(self._names.get(interface, ())) != many:
            self._names[interface] = _strings(interface, many, ask)
        return dict(zip(self._names[interface], _values(interface, many, ask), strict=False))


def _count(interface: str, ask: Ask) -> int:
    asked = bytearray(struct.pack("=IIQI", _SSET_INFO, 0, 1 << _SET, 0))
    ask(interface, asked)
    _, _, mask, count = struct.unpack("=IIQI", asked)
    return int(count) if mask and count <= _MOST else 0


def _strings(interface: str, many: int, ask: Ask) -> list[str]:
    asked = bytearray(struct.pack("=III", _STRINGS, _SET, many)) + bytearray((many + _SPARE) * _NAME)
    ask(interface, asked)
    words = (bytes(asked[12 + n * _NAME : 12 + (n + 1) * _NAME]) for n in range(many))
    return [word.partition(b"\0")[0].decode(errors="replace").strip() for word in words]


def _values(interface: str, many: int, ask: Ask) -> tuple[int, ...]:
    """The kernel writes as many as there are now, whatever was asked for: there is room for more."""
    asked = bytearray(struct.pack("=II", _STATS, many)) + bytearray((many + _SPARE) * 8)
    ask(interface, asked)
    there = struct.unpack_from("=I", asked, 4)[0]
    return struct.unpack_from(f"={many}Q", asked, 8) if there == many else ()  # of another number the names are no longer right


def _ask(interface: str, asked: bytearray) -> None:
    """The kernel's answer. The buffer must not move meanwhile: an array's does not."""
    name = interface.encode(errors="surrogateescape")
    if len(name) >= _IFNAMSIZ:
        return
    held = array.array("B", asked)
    request = struct.pack(f"@{_IFNAMSIZ}sP16x", name, held.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        fcntl.ioctl(door, _SIOCETHTOOL, request)
    asked[:] = held.tobytes()


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6
