"""Small files of the kernel, one value each. What is absent, cannot be read or makes no sense is None."""

from pathlib import Path
from typing import Final

_MOST: Final = 16 << 20  # bytes of a file: more than any attribute or table that we read has


def text(path: Path) -> str | None:
    """The file's text without the blanks around it; a byte that is no UTF-8 is kept as a surrogate."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST).decode("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):  # ValueError: a path that cannot be one
        return None


def number(path: Path) -> int | None:
    """A whole number that is not negative, decimal or with 0x before it hexadecimal."""
    return whole(text(path))


def whole(word: str | None) -> int | None:
    """`word` as a whole number that is not negative, decimal or with 0x before it hexadecimal."""
    if not word or not word.isascii() or len(word) > 40:
        return None
    if word.isdigit():
        return int(word)
    digits = word.removeprefix("0x")
    return int(digits, 16) if digits != word and digits.isalnum() and _is_hex(digits) else None


def _is_hex(digits: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in digits)
