"""Amounts of bytes in the words of people: the same in the console and in pages."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size(value: float) -> str:
    """Bytes in powers of a thousand: `812 B`, `1.5 GB`, `41.2 TB`."""
    for unit in _UNITS[:-1]:
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} {_UNITS[-1]}"
