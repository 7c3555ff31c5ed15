"""Lists and near misses in the words of people: the same in pages, in the timeline, in the report and in errors."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches


def listed(names: Sequence[str], most: int) -> str:
    """`a, b, c`; of more than `most` the first ones: `a, b and 5 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def nearest(word: str, known: Collection[str]) -> str:
    """What a person may have meant by an unknown `word`, to be put behind what is said of it."""
    found = get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else f"; known are {', '.join(sorted(known))}"
