"""A run's ledger as of now: reads what it is computed from, computes it, writes nothing."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.clock import from_micros, to_micros
from pipeline.queries.attempt_phases import PhaseTimes, attempt_phases
from pipeline.queries.attempt_signs import Signs, attempt_signs
from pipeline.queries.attempt_steps import StepTimes, attempt_steps
from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.run_exits import run_exits
from pipeline.queries.run_first_steps import run_first_steps
from pipeline.queries.run_incidents import run_incidents
from pipeline.queries.run_transitions import run_transitions
from pipeline.queries.run_work import run_work
from pipeline.queries.run_world import run_world
from pipeline.records import LedgerEntry
from pipeline.store import Store
from slo import frame as frames
from slo.history import CATEGORY_OF, Frame, Pace, PhaseSpan, RankRecords, StepSpan
from slo.ledger import Piece, entries, pieces
from slo.pace import DEVIATIONS, MIN_STEPS
from slo.working import TELEMETRY_GAP


def compute_run(store: Store, run: str, now: datetime) -> list[LedgerEntry]:
    """The whole ledger of `run` up to its end, or `now`; empty for a run that is not known. Raises StoreError."""
    frame = read_frame(store, run, now)
    if frame is None:
        return []
    return [entry for piece in pieces(frame) for entry in compute_piece(store, frame, piece)]


def compute_piece(store: Store, frame: Frame, piece: Piece, generation: int = 0) -> list[LedgerEntry]:
    """The entries of one piece of the run's time. Raises StoreError."""
    records = read_records(store, frame.run, piece) if piece.index is not None else {}
    return entries(frame, piece, records, read_pace(store, frame.run, from_micros(piece.end)), generation)


def read_frame(store: Store, run: str, now: datetime) -> Frame | None:
    """The frame of `run`, None where it is not known."""
    transitions = run_transitions(store, run)
    if not transitions:
        return None
    ranks, steps, exits = run_world(store, run), run_first_steps(store, run, now), run_exits(store, run)
    return frames.frame(transitions, attempts_of_runs(store, [run]), run_incidents(store, run), steps, exits, ranks, now)


def read_pace(store: Store, run: str, until: datetime) -> Pace | None:
    """The run's healthy step by what it had done `until` then, so that a part that is over keeps its measure."""
    work = run_work(store, run, until, DEVIATIONS)
    return Pace(work.mean_us, work.limit_us) if work.steps >= MIN_STEPS else None


def read_records(store: Store, run: str, piece: Piece) -> dict[int, RankRecords]:
    """What the ranks of the piece's attempt left in and around its time."""
    steps = attempt_steps(store, run, piece.attempt, from_micros(piece.start), from_micros(piece.end))
    phases = attempt_phases(store, run, piece.attempt)
    signs = {s.rank: s for s in attempt_signs(store, run, piece.attempt, TELEMETRY_GAP / 1e6)}
    ranks = {s.rank for s in steps} | {p.rank for p in phases} | signs.keys()
    return {
        rank: RankRecords(
            steps=tuple(_step(s) for s in steps if s.rank == rank),
            phases=_around(piece, [s for s in steps if s.rank == rank], _phases([p for p in phases if p.rank == rank])),
            signs=_seen(signs[rank]) if rank in signs else None,
            silences=tuple((to_micros(a), to_micros(b)) for a, b in signs[rank].silences) if rank in signs else (),
        )
        for rank in ranks
    }


def _step(row: StepTimes) -> StepSpan:
    given = {category: getattr(row, phase) for phase, category in CATEGORY_OF.items()}
    phases = {category: round(seconds * 1e6) for category, seconds in given.items() if seconds}
    return StepSpan(row.step, to_micros(row.started_at), to_micros(row.ended_at), phases)


def _phases(rows: Sequence[PhaseTimes]) -> list[PhaseSpan]:
    known = [(CATEGORY_OF[r.phase], to_micros(r.ended_at), round(r.seconds * 1e6)) for r in rows if r.phase in CATEGORY_OF]
    return [PhaseSpan(end - length, end, category) for category, end, length in known]


def _around(piece: Piece, steps: Sequence[StepTimes], phases: Sequence[PhaseSpan]) -> tuple[PhaseSpan, ...]:
    """Of an attempt's phases those that can matter: from the first known step on, and the last one before it."""
    low = min([piece.start, *(to_micros(s.started_at) for s in steps[:1])])
    before = [p for p in phases if p.end <= low]
    return (*before[-1:], *(p for p in phases if p.end > low and p.start < piece.end))


def _seen(signs: Signs) -> tuple[int, int]:
    return to_micros(signs.first_at), to_micros(signs.last_at)
