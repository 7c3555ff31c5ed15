"""Amounts of bytes in the words of people: the same in the console and in pages."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def bound(value: int) -> str:
    """A limit as it was set: `64 MiB`, `512 KiB`; in bytes where it is no whole number of those."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << power and value % (1 << power) == 0:
            return f"{value >> power} {unit}"
    return f"{value} bytes"


def size(value: float) -> str:
    """Bytes in powers of a thousand: `812 B`, `1.5 GB`, `41.2 TB`."""
    for unit in _UNITS[:-1]:
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} {_UNITS[-1]}"
