"""One rank's time in one attempt by its own records, before incidents and silence are laid over it.

A step's time reaches back to the end of the step before it, so that a loop's code between its steps belongs
to one of them. Phases within a step have lengths but no places: data, then the work, then eval and
checkpoint is what is drawn; only the sums are measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline.catalog.layers import Category
from slo.history import FirstStep, Pace, PhaseSpan, RankRecords, StepSpan
from slo.spans import Span, clip, paint, recolour_last, subtract

TELEMETRY_GAP = 10_000_000  # longer without a sign of life of a running rank is unknown
HALTED = 2  # a step that took more than this many times the limit of a healthy one did not go on meanwhile
START_SILENCE = 60_000_000  # a rank that has never spoken is taken to be starting for this long

_BEFORE = (Category.INIT, Category.LOAD_CHECKPOINT, Category.COMPILE, Category.DATA_WAIT)
_AFTER = (Category.EVAL, Category.CHECKPOINT)
_LOSABLE = frozenset({Category.DATA_WAIT, Category.ROLLOUT_IDLE, Category.SLOW, Category.PRODUCTIVE})


@dataclass(frozen=True, slots=True)
class Segment:
    """An attempt and the gap after it, for one rank.

    `stop` is when the rank ended, or `end`. `up`: it runs on at `end`. `clean`: it ended in good order.
    `blame` is the incident that its unfinished step is charged to. `lost` are (step, incident): steps from that one
    on were lost to that incident; the first entry that applies counts.
    """

    start: int
    end: int
    stop: int
    up: bool = False
    clean: bool = False
    blame: str = ""
    lost: tuple[tuple[int, str], ...] = ()


@dataclass(slots=True)
class Worked:
    """`spans` cover the segment without a gap; `normal` are the steps that did not halt."""

    spans: list[Span] = field(default_factory=list)
    normal: list[tuple[int, int]] = field(default_factory=list)


def working(records: RankRecords, first: FirstStep | None, segment: Segment, pace: Pace | None) -> Worked:
    """The rank's time over `segment`. `first` is its first step of the attempt, None where it completed none."""
    done = Worked()
    lead_end = min(first.start, segment.stop) if first else segment.stop
    done.spans += _over(segment.start, max(lead_end, segment.start), Category.INIT, records.phases)
    previous: StepSpan | None = None
    for step in records.steps:
        is_first = first is not None and step.start <= first.start
        begin = step.start if previous is None else previous.end
        if (previous or is_first) and step.end > begin:
            _add_step(done, step, previous, begin, segment, records.phases, pace)
        previous = step if previous is None or step.end > previous.end else previous
    if previous:
        done.spans += _tail(previous.end, segment, records.phases, pace)
    done.spans = paint([Span(segment.start, segment.end, Category.IDLE)], clip(_ordered(done.spans), segment.start, segment.end))
    return done


def _ordered(spans: Sequence[Span]) -> list[Span]:
    """Records of a clock that went wrong may overlap: the earlier one keeps the time."""
    done: list[Span] = []
    cursor = spans[0].start if spans else 0
    for s in spans:
        if s.end > max(cursor, s.start):
            done.append(replace(s, start=max(cursor, s.start)))
            cursor = s.end
    return done


def _add_step(
    done: Worked, step: StepSpan, previous: StepSpan | None, begin: int, segment: Segment, phases: Sequence[PhaseSpan], pace: Pace | None
) -> None:
    spans = [*_over(begin, max(begin, step.start), Category.PRODUCTIVE, phases), *_within(step, max(begin, step.start))]
    work = sum(s.length for s in spans if s.category is Category.PRODUCTIVE)
    steps = max(1, step.step - previous.step) if previous else 1  # more than one where records in between were overwritten
    if pace and work > pace.limit * steps:
        spans = recolour_last(spans, work - pace.mean * steps, Category.PRODUCTIVE, Category.SLOW if previous else Category.INIT)
    if pace and work <= pace.limit * steps * HALTED:
        done.normal.append((begin, step.end))
    done.spans += _lose(spans, step.step, segment)


def _within(step: StepSpan, start: int) -> list[Span]:
    """The inside of a step from `start` on; a phase longer than what is left of the step gets what is left."""
    room = step.end - start
    lengths: dict[Category, int] = {}
    for category in sorted(step.phases, key=list(Category).index):
        lengths[category] = min(room, max(0, step.phases[category]))
        room -= lengths[category]
    order = [*((c, lengths.get(c, 0)) for c in _BEFORE), (Category.PRODUCTIVE, room), *((c, lengths.get(c, 0)) for c in _AFTER)]
    spans, cursor = [], start
    for category, length in order:
        if length:
            spans.append(Span(cursor, cursor + length, category))
            cursor += length
    return spans


def _lose(spans: list[Span], step: int, segment: Segment) -> list[Span]:
    incident = next((incident for first, incident in segment.lost if step >= first), None)
    if incident is None:
        return spans
    return [Span(s.start, s.end, Category.LOST_PROGRESS, incident) if s.category in _LOSABLE else s for s in spans]


def _tail(begin: int, segment: Segment, phases: Sequence[PhaseSpan], pace: Pace | None) -> list[Span]:
    """From the last completed step to the rank's end."""
    if begin >= segment.stop:
        return []
    if segment.clean:
        return _over(begin, segment.stop, Category.IDLE, phases)
    spans = _over(begin, segment.stop, Category.PRODUCTIVE, phases)
    if not segment.up:
        return [Span(s.start, s.end, Category.LOST_PROGRESS, segment.blame) if s.category in _LOSABLE else s for s in spans]
    work = sum(s.length for s in spans if s.category is Category.PRODUCTIVE)
    if pace and work > pace.limit:
        return recolour_last(spans, work - pace.mean, Category.PRODUCTIVE, Category.SLOW)
    return spans


def _over(start: int, end: int, category: Category, phases: Sequence[PhaseSpan]) -> list[Span]:
    """[start, end) in `category`, with the phases that lie in it."""
    if start >= end:
        return []
    inside = _ordered(sorted((Span(p.start, p.end, p.category) for p in phases if p.start < end and p.end > start), key=lambda s: s.start))
    return paint([Span(start, end, category)], clip(inside, start, end))


def unknown(records: RankRecords, first: FirstStep | None, segment: Segment) -> list[Span]:
    """Where the rank should have been seen, was not, and no step says what it did."""
    ends = [records.signs[1]] if records.signs else []
    ends += [s.end for s in records.steps] + [p.end for p in records.phases]
    if not ends:
        begin = segment.start + START_SILENCE
        return clip([Span(begin, segment.stop, Category.UNKNOWN)], segment.start, segment.end) if begin < segment.stop else []
    spans = [Span(start, end, Category.UNKNOWN) for start, end in records.silences if end - start > TELEMETRY_GAP]
    if segment.stop - max(ends) > TELEMETRY_GAP:
        spans.append(Span(max(ends), segment.stop, Category.UNKNOWN))
    stepped = [(first.start, max(s.end for s in records.steps))] if first and records.steps else []
    return clip(subtract(_ordered(sorted(spans, key=lambda s: s.start)), stepped), segment.start, segment.stop)
