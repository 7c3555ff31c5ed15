"""Long lists in the words of people: the same in pages, in the timeline and in the report."""

from collections.abc import Sequence


def listed(names: Sequence[str], most: int) -> str:
    """`a, b, c`; of more than `most` the first ones: `a, b and 5 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
