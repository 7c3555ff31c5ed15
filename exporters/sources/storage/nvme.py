"""NVMe's SMART / Health log page (NVM Express base specification, log page 02h), in base units. Pure."""

from dataclasses import dataclass
from typing import Final

SIZE: Final = 512
_KELVIN: Final = 273  # the page's temperature is in whole kelvins
_UNIT: Final = 512_000  # bytes of a "data unit"
_HOT: Final = 0b10  # of the warnings: the temperature alone; any other is about the disk's own health
_BIGGEST: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Health:
    """`warnings` are the page's own bits. Ratios are 0-1: `spare` is what is left, `wear` of the rated endurance may pass 1.
    `written` and `read` are bytes; the counts began when the disk was made."""

    warnings: int
    temperature: float | None
    spare: float
    spare_limit: float
    wear: float
    read: int | None
    written: int | None
    unsafe_shutdowns: int | None
    media_errors: int | None

    @property
    def degraded(self) -> bool:
        """Whether the disk itself says that it is unfit: no spare left, unreliable, read-only, or its cache's supply failed."""
        return bool(self.warnings & ~_HOT)

    @property
    def hot(self) -> bool:
        """Whether the disk says that its temperature is beyond its limits."""
        return bool(self.warnings & _HOT)


def health(page: str) -> Health | None:
    """The log page in hexadecimal digits; None where it cannot be one (too short, or all one byte: no controller answered)."""
    try:
        data = bytes.fromhex(page)
    except ValueError:
        return None
    if len(data) < SIZE or len(set(data[:SIZE])) == 1:
        return None
    kelvins = int.from_bytes(data[1:3], "little")
    return Health(
        warnings=data[0],
        temperature=float(kelvins - _KELVIN) if kelvins else None,
        spare=data[3] / 100,
        spare_limit=data[4] / 100,
        wear=data[5] / 100,
        read=_count(data, 32, _UNIT),
        written=_count(data, 48, _UNIT),
        unsafe_shutdowns=_count(data, 144),
        media_errors=_count(data, 160),
    )


def _count(data: bytes, offset: int, factor: int = 1) -> int | None:
    """A 16-byte count; None beyond what can be kept."""
    value = int.from_bytes(data[offset : offset + 16], "little") * factor
    return value if value < _BIGGEST else None
