"""What of a run's ledger is out of date. Pure.

A piece has a signature: all that its entries depend on. It is computed again when that changes: because time
goes on (the last piece), a record came late, an incident moved, or a later attempt went back before its steps.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pipeline.clock import to_micros
from pipeline.queries.ledger_marks import Mark
from pipeline.queries.run_first_steps import StepRange
from slo.history import Frame
from slo.ledger import PART, Piece
from slo.outages import all_outages, attempt_stop, blame, failed, lost_from

Signatures = dict[tuple[str, int], str]


def signatures(frame: Frame, plan: Sequence[Piece], marks: Sequence[Mark], steps: Sequence[StepRange]) -> Signatures:
    """The signature of each piece of `plan`, by attempt and part."""
    by_piece = {(m.attempt, m.part): m for m in marks}
    return {(p.attempt, p.part): _signature(frame, p, by_piece.get((p.attempt, p.part)), steps) for p in plan}


def stale(new: Signatures, old: Mapping[tuple[str, int], str]) -> set[tuple[str, int]]:
    """The pieces to compute again, and those that are no longer there."""
    return {key for key, signature in new.items() if old.get(key) != signature} | (old.keys() - new.keys())


def _signature(frame: Frame, piece: Piece, mark: Mark | None, steps: Sequence[StepRange]) -> str:
    facts: list[object] = [piece.start, piece.end, frame.ranks, mark]
    if piece.index is not None:
        outages = all_outages(frame)
        facts.append([o for o in outages if o.onset < piece.end and (o.resolved is None or o.resolved + PART > piece.start)])
        lasts = [(s.rank, to_micros(s.last_ended_at)) for s in steps if s.attempt == piece.attempt]
        passed = sum(last >= piece.end for _, last in lasts)
        facts.append(passed)
        if passed < frame.ranks:  # of the others, the time after their last step lies in it
            stop = min(attempt_stop(frame, piece.index), piece.end)
            facts += [sorted((rank, min(last, piece.end)) for rank, last in lasts), stop]
            facts += [failed(frame, piece.index), blame(frame, outages, piece.index)]
        last_step = mark.last_step + 1 if mark else None
        facts.append([lost for lost in lost_from(frame, outages, piece.index) if last_step is None or lost[0] <= last_step])
        facts.append(sorted((rank, min(at, piece.end)) for (name, rank), at in frame.exits.items() if name == piece.attempt))
        facts.append(sorted((rank, f.end) for (name, rank), f in frame.firsts.items() if name == piece.attempt))
    return blake2b(repr(facts).encode(), digest_size=8).hexdigest()
