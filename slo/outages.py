"""What incidents cost: the time in which a run did not do its steps, and the steps that it lost by them."""

from collections.abc import Sequence

from pipeline.catalog.layers import Category
from slo.history import Attempt, Frame, Outage
from slo.spans import Span, paint, subtract


def base_name(frame: Frame, attempt: str) -> str:
    """The attempt of `frame` that `attempt` names: itself, or the launch that an inner restart of torchrun belongs to."""
    names = {a.name for a in frame.attempts}
    return attempt if attempt in names else attempt.rpartition(".")[0]


def failed(frame: Frame, index: int) -> bool:
    """True where an attempt ended otherwise than in good order, or another one had to follow it."""
    attempt = frame.attempts[index]
    return index + 1 < len(frame.attempts) or (attempt.end is not None and attempt.exit_code != 0)


def all_outages(frame: Frame) -> list[Outage]:
    """The frame's outages in order of their onset, and one for each failed attempt that none of them names.

    It bears the id of the incident that goes on through that attempt, else none.
    """
    found = list(frame.outages)
    explained = {base_name(frame, o.attempt) for o in found}
    for n, attempt in enumerate(frame.attempts):
        if failed(frame, n) and attempt.name not in explained:
            ended = attempt_stop(frame, n)
            exits = [at for (name, _), at in frame.exits.items() if name == attempt.name]
            found.append(Outage(_going_on(frame, n), attempt.name, min([*exits, ended]), detected=ended, located=ended, acted=ended))
    return sorted(found, key=lambda o: (o.onset, o.incident))


def _going_on(frame: Frame, index: int) -> str:
    """The incident that attempt `index` was to mend, and did not: it began before, and a later attempt recovered from it, or none has."""
    names = [a.name for a in frame.attempts]
    for o in frame.outages:
        own = base_name(frame, o.attempt)
        if own in names and o.next_attempt in names and names.index(own) < index:
            following = names.index(o.next_attempt)
            if index < following or (index == following and o.recovered is None):
                return o.incident
    return ""


def attempt_stop(frame: Frame, index: int) -> int:
    """When an attempt ended: as it said, or when the next one started, or with the run (or now)."""
    attempt = frame.attempts[index]
    following = frame.attempts[index + 1].start if index + 1 < len(frame.attempts) else frame.end
    return following if attempt.end is None else min(attempt.end, following)


def blame(frame: Frame, outages: Sequence[Outage], index: int) -> str:
    """The incident that ended an attempt, "" where none is known."""
    name = frame.attempts[index].name
    return next((o.incident for o in outages if base_name(frame, o.attempt) == name), "")


def lost_from(frame: Frame, outages: Sequence[Outage], index: int) -> tuple[tuple[int, str], ...]:
    """(step, incident): the steps of attempt `index` from that one on were executed again after that incident.

    Where more than one attempt went back before a step, the first that did is what lost it.
    """
    lost: list[tuple[int, str]] = []
    for later in range(index + 1, len(frame.attempts)):
        resumed = first_step_of(frame, frame.attempts[later])
        if resumed is not None and (not lost or resumed < lost[-1][0]):
            lost.append((resumed, blame(frame, outages, later - 1)))
    return tuple(lost)


def first_step_of(frame: Frame, attempt: Attempt) -> int | None:
    """The first step that any rank completed in `attempt`."""
    return min((f.step for (name, _), f in frame.firsts.items() if name == attempt.name), default=None)


def outage_spans(frame: Frame, outages: Sequence[Outage], rank: int, normal: Sequence[tuple[int, int]]) -> list[Span]:
    """The time of `rank` that incidents take: detect, locate and act but for the steps in `normal`, and restart.

    Of two incidents at one time, the one with the later onset has it.
    """
    spans: list[Span] = []
    for outage in outages:
        following = _next_index(frame, outage)
        spans = paint(spans, subtract(_down(frame, outage, following), normal))
        if following is not None:
            spans = paint(spans, _restart(frame, outage, following, rank))
    return spans


def _next_index(frame: Frame, outage: Outage) -> int | None:
    names = [a.name for a in frame.attempts]
    if outage.next_attempt in names:
        return names.index(outage.next_attempt)
    own = base_name(frame, outage.attempt)
    if own in names and names.index(own) + 1 < len(names):
        return names.index(own) + 1
    return None


def _down(frame: Frame, outage: Outage, following: int | None) -> list[Span]:
    over = outage.recovered or outage.resolved or frame.end
    end = frame.attempts[following].start if following is not None else over
    detected = min(end, end if outage.detected is None else max(outage.onset, outage.detected))
    located_at = outage.located if outage.located is not None else outage.acted
    located = min(end, end if located_at is None else max(detected, located_at))
    edges = (("detect", outage.onset, detected), ("locate", detected, located), ("act", located, end))
    return [Span(start, stop, Category(name), outage.incident) for name, start, stop in edges if start < stop]


def _restart(frame: Frame, outage: Outage, following: int, rank: int) -> list[Span]:
    attempt = frame.attempts[following]
    first = frame.firsts.get((attempt.name, rank))
    end = first.end if first else outage.recovered
    limit = attempt_stop(frame, following)
    end = limit if end is None else min(end, limit)
    return [Span(attempt.start, end, Category.RESTART, outage.incident)] if attempt.start < end else []
