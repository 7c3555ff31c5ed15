"""The ledger: where every GPU-second of a run went. Pure; all arithmetic is in whole microseconds.

Of one rank, entries are disjoint and leave no gap from the run's start to its end (or now); over all ranks
they sum to wall time times ranks exactly. Where more than one category applies, the catalogue's order decides
(`pipeline.catalog.layers.Category`), with one reading of it: an incident is charged for time in which the
run did not do its steps, so a step that took less than twice its usual time stays what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipeline.catalog.layers import Category
from pipeline.clock import from_micros
from pipeline.records import LedgerEntry
from slo.history import Frame, Outage, Pace, RankRecords
from slo.outages import all_outages, attempt_stop, blame, failed, lost_from, outage_spans
from slo.spans import Span, clip, compact, merge, paint
from slo.working import Segment, unknown, working

PART = 600_000_000  # a long attempt is kept in slices of ten minutes, counted from the run's start
SLOT = 60_000_000  # within a minute, the time of steps is kept as one entry a category
_SORTABLE = frozenset(
    {
        Category.CHECKPOINT,
        Category.EVAL,
        Category.LOST_PROGRESS,
        Category.DATA_WAIT,
        Category.ROLLOUT_IDLE,
        Category.SLOW,
        Category.PRODUCTIVE,
    }
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment's slice: what is computed, kept and replaced as one. `index` is the attempt's in the frame, None before the first."""

    attempt: str
    index: int | None
    part: int
    start: int
    end: int


def pieces(frame: Frame) -> list[Piece]:
    """The run's time, cut at the starts of its attempts (the first begins with the run) and into parts, in order."""
    edges = [frame.start, *(min(max(a.start, frame.start), frame.end) for a in frame.attempts[1:]), frame.end]
    names: list[tuple[str, int | None]] = [(a.name, n) for n, a in enumerate(frame.attempts)] or [("", None)]
    found: list[Piece] = []
    for (name, index), (start, end) in zip(names, pairwise(edges), strict=True):
        for part in range((start - frame.start) // PART, -(-(end - frame.start) // PART)):
            low, high = frame.start + part * PART, frame.start + (part + 1) * PART
            found.append(Piece(name, index, part, max(start, low), min(end, high)))
    return found


def entries(frame: Frame, piece: Piece, records: Mapping[int, RankRecords], pace: Pace | None, generation: int = 0) -> list[LedgerEntry]:
    """The entries of `piece`, for each of the frame's ranks, whether it left records or not."""
    outages = all_outages(frame)
    found: list[LedgerEntry] = []
    for rank in range(frame.ranks):
        spans = _rank(frame, piece, outages, rank, records.get(rank, RankRecords()), pace)
        found += [_entry(frame.run, piece, generation, rank, s) for s in spans]
    return found


def _entry(run: str, piece: Piece, generation: int, rank: int, span: Span) -> LedgerEntry:
    return LedgerEntry(
        run=run,
        attempt=piece.attempt,
        part=piece.part,
        generation=generation,
        rank=rank,
        started_at=from_micros(span.start),
        ended_at=from_micros(span.end),
        category=span.category.value,
        incident=span.incident,
    )


def _rank(frame: Frame, piece: Piece, outages: list[Outage], rank: int, records: RankRecords, pace: Pace | None) -> list[Span]:
    if piece.index is None:
        return [Span(piece.start, piece.end, Category.INIT)]
    segment = _segment(frame, piece.index, outages, rank)
    first = frame.firsts.get((frame.attempts[piece.index].name, rank))
    worked = working(records, first, segment, pace)
    spans = paint(worked.spans, outage_spans(frame, outages, rank, worked.normal))
    spans = paint(spans, unknown(records, first, segment))
    return merge(compact(clip(spans, piece.start, piece.end), SLOT, _SORTABLE))


def _segment(frame: Frame, index: int, outages: list[Outage], rank: int) -> Segment:
    attempt = frame.attempts[index]
    last = index + 1 == len(frame.attempts)
    start = frame.start if index == 0 else attempt.start
    end = frame.end if last else frame.attempts[index + 1].start
    exited = frame.exits.get((attempt.name, rank))
    going = last and attempt.end is None and not frame.ended
    return Segment(
        start=start,
        end=max(start, end),
        stop=max(start, min(attempt_stop(frame, index), end if exited is None else exited)),
        up=going and exited is None,
        clean=not going and not failed(frame, index),
        blame=blame(frame, outages, index),
        lost=lost_from(frame, outages, index),
    )
