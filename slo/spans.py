"""Stretches of one rank's time, in whole microseconds: lists of them are ordered and never overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pipeline.catalog.layers import Category


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) in microseconds, in one category; `incident` is the one it is charged to, "" where none is."""

    start: int
    end: int
    category: Category
    incident: str = ""

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.end - self.start


ORDER = {category: n for n, category in enumerate(Category)}


def clip(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """What of `spans` lies in [start, end)."""
    cut = (Span(max(s.start, start), min(s.end, end), s.category, s.incident) for s in spans)
    return [s for s in cut if s.start < s.end]


def paint(base: Sequence[Span], over: Sequence[Span]) -> list[Span]:
    """`over`, and `base` where `over` leaves it bare."""
    bare = subtract(base, [(o.start, o.end) for o in over])
    return sorted([*bare, *over], key=lambda s: s.start)


def subtract(spans: Sequence[Span], holes: Sequence[tuple[int, int]]) -> list[Span]:
    """`spans` without `holes`, both ordered and free of overlap."""
    left: list[Span] = []
    first = 0
    for s in spans:
        cursor = s.start
        while first < len(holes) and holes[first][1] <= s.start:
            first += 1
        for start, end in holes[first:]:
            if start >= s.end:
                break
            if start > cursor:
                left.append(Span(cursor, start, s.category, s.incident))
            cursor = max(cursor, end)
        if cursor < s.end:
            left.append(Span(cursor, s.end, s.category, s.incident))
    return left


def recolour_last(spans: Sequence[Span], amount: int, old: Category, new: Category) -> list[Span]:
    """The last `amount` microseconds of category `old` become `new`."""
    done: list[Span] = []
    for s in reversed(spans):
        take = min(amount, s.length) if s.category is old else 0
        if take:
            done.append(Span(s.end - take, s.end, new, s.incident))
        if take < s.length:
            done.append(Span(s.start, s.end - take, s.category, s.incident))
        amount -= take
    return done[::-1]


def merge(spans: Sequence[Span]) -> list[Span]:
    """Neighbours of one category and incident become one."""
    done: list[Span] = []
    for s in spans:
        last = done[-1] if done else None
        if last and (last.end, last.category, last.incident) == (s.start, s.category, s.incident):
            done[-1] = Span(last.start, s.end, s.category, s.incident)
        else:
            done.append(s)
    return done


def compact(spans: Sequence[Span], width: int, sortable: frozenset[Category]) -> list[Span]:
    """The same time in fewer spans: in each slot of `width` microseconds, `sortable` neighbours are put in the catalogue's order.

    Sums by category and slot do not change; where within its slot a sortable category lies is given up.
    """
    slots = (piece for s in spans for piece in _cut(s, width))
    done: list[Span] = []
    for (_, can), group in groupby(slots, key=lambda s: (s.start // width, s.category in sortable)):
        inside = list(group)
        done += _in_order(inside) if can else inside
    return merge(done)


def _cut(span: Span, width: int) -> list[Span]:
    edges = [span.start, *range((span.start // width + 1) * width, span.end, width), span.end]
    return [Span(a, b, span.category, span.incident) for a, b in pairwise(edges)]


def _in_order(group: list[Span]) -> list[Span]:
    sums: dict[tuple[int, str], int] = {}
    for s in group:
        key = (ORDER[s.category], s.incident)
        sums[key] = sums.get(key, 0) + s.length
    done, cursor = [], group[0].start
    categories = list(Category)
    for (order, incident), length in sorted(sums.items()):
        done.append(Span(cursor, cursor + length, categories[order], incident))
        cursor += length
    return done
