"""The ledger, against cases worked out by hand and a reference that paints every second of every rank by itself."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.layers import Category
from pipeline.catalog.rules import halts
from pipeline.clock import to_micros
from pipeline.records import LedgerEntry
from slo.history import Attempt, FirstStep, Frame, Outage, Pace, PhaseSpan, RankRecords, StepSpan
from slo.ledger import entries, pieces

S = 1_000_000
T0 = 1_790_000_000 * S - (1_790_000_000 * S) % (60 * S)  # a full minute
Records = dict[str, dict[int, RankRecords]]


def at(second: float) -> int:
    return T0 + round(second * S)


def step(number: int, start: float, end: float, **phases: float) -> StepSpan:
    return StepSpan(number, at(start), at(end), {Category(name): round(value * S) for name, value in phases.items()})


def ledger(frame: Frame, records: Records, pace: Pace | None = None) -> list[LedgerEntry]:
    found: list[LedgerEntry] = []
    for piece in pieces(frame):
        found += entries(frame, piece, records.get(piece.attempt, {}), pace)
    return found


def sums(found: list[LedgerEntry], rank: int | None = None) -> dict[tuple[str, str], float]:
    """Seconds by (category, incident)."""
    total: Counter[tuple[str, str]] = Counter()
    for e in found:
        if rank is None or e.rank == rank:
            total[e.category, e.incident] += to_micros(e.ended_at) - to_micros(e.started_at)
    return {key: micros / S for key, micros in total.items()}


def with_firsts(frame: Frame, records: Records) -> Frame:
    firsts = {}
    for name, ranks in records.items():
        for rank, r in ranks.items():
            if r.steps:
                firsts[name, rank] = FirstStep(r.steps[0].step, r.steps[0].start, r.steps[0].end)
    return replace(frame, firsts=firsts)


def seen(*steps: StepSpan, phases: tuple[PhaseSpan, ...] = (), until: float | None = None) -> RankRecords:
    last = at(until) if until is not None else max(s.end for s in steps)
    return RankRecords(steps=steps, phases=phases, signs=(steps[0].start if steps else T0, last))


def test_a_run_without_a_fault_is_start_up_steps_and_idle() -> None:
    """0-4 start (1 s of it loading), two steps of 3 s with 0.5 s of data each, 1 s between them, a checkpoint of 2 s in the second."""
    steps = (step(0, 4, 7, data_wait=0.5), step(1, 8, 13, data_wait=0.5, checkpoint=2))
    frame = Frame("r", at(0), at(15), ended=True, ranks=1, attempts=(Attempt("r-1", at(0.5), at(14), 0),))
    records: Records = {"r-1": {0: seen(*steps, phases=(PhaseSpan(at(2), at(3), Category.LOAD_CHECKPOINT),))}}
    assert sums(ledger(with_firsts(frame, records), records)) == {
        ("init", ""): 3,
        ("load_checkpoint", ""): 1,
        ("data_wait", ""): 1,
        ("checkpoint", ""): 2,
        ("productive", ""): 2.5 + 1 + 2.5,
        ("idle", ""): 2,
    }


def killed() -> tuple[Frame, Records]:
    """Two ranks, steps of 1 s from 4 s on. Rank 1 dies at 10.4; seen at 11, located at 11.5, acted at 12; up again at 13, first step 18.

    The new attempt resumes after step 2 (4-7 s hold steps 0-2), so steps 3, 4 and 5 of the first were lost.
    """
    first = tuple(step(n, 4 + n, 5 + n) for n in range(6))
    second = tuple(step(n, 17 + n - 3, 18 + n - 3) for n in range(3, 8))
    outage = Outage("i1", "r-1", at(10.4), at(11), at(11.5), at(12), recovered=at(18), resolved=at(20), next_attempt="r-2")
    frame = Frame(
        "r",
        at(0),
        at(22),
        ended=False,
        ranks=2,
        attempts=(Attempt("r-1", at(0), at(11), 1), Attempt("r-2", at(13))),
        outages=(outage,),
        exits={("r-1", 1): at(10.4), ("r-1", 0): at(10.9)},
    )
    records: Records = {name: {rank: seen(*steps) for rank in (0, 1)} for name, steps in (("r-1", first), ("r-2", second))}
    return with_firsts(frame, records), records


def test_a_killed_rank_costs_detect_locate_act_restart_and_the_steps_that_were_lost() -> None:
    frame, records = killed()
    assert sums(ledger(frame, records), rank=0) == {
        ("init", ""): 4,
        ("productive", ""): 3 + 4,
        ("lost_progress", "i1"): 3 + 0.4,
        ("detect", "i1"): pytest.approx(0.6),
        ("locate", "i1"): 0.5,
        ("act", "i1"): 1.5,
        ("restart", "i1"): 5,
    }


def test_all_ranks_sum_to_wall_time_times_ranks_to_the_microsecond() -> None:
    frame, records = killed()
    assert sum(to_micros(e.ended_at) - to_micros(e.started_at) for e in ledger(frame, records)) == 22 * S * 2


def test_a_hang_is_detect_from_its_onset_on() -> None:
    """Steps of 1 s up to 9 s; one rank stopped at 9.2; seen 13, restarted at 15, first step 20."""
    steps = tuple(step(n, n, n + 1) for n in range(9))
    outage = Outage("i", "r-1", at(9.2), at(13), at(13), at(13.5), recovered=at(20), next_attempt="r-2")
    frame = Frame(
        "r", at(0), at(20), ended=False, ranks=1, attempts=(Attempt("r-1", at(0), at(15), -9), Attempt("r-2", at(15))), outages=(outage,)
    )
    records: Records = {"r-1": {0: seen(*steps, until=15)}, "r-2": {0: seen(step(8, 19, 20))}}
    assert sums(ledger(with_firsts(frame, records), records)) == {
        ("productive", ""): 8,
        ("lost_progress", "i"): pytest.approx(1.2),
        ("detect", "i"): pytest.approx(3.8),
        ("act", "i"): 2,
        ("restart", "i"): 5,
    }


def test_re_execution_is_productive_and_a_second_loss_is_charged_to_the_second_incident() -> None:
    """r-1 does 0-5; r-2 goes back to 4 and does 4, 5; r-3 goes back to 2: 4-5 of r-1 were lost to i1, 2-3 and all of r-2 to i2."""
    attempts = (Attempt("r-1", at(0), at(6), 1), Attempt("r-2", at(6), at(9), 1), Attempt("r-3", at(9)))
    outages = (
        Outage("i1", "r-1", at(6), at(6), at(6), recovered=at(7), next_attempt="r-2"),
        Outage("i2", "r-2", at(9), at(9), at(9), recovered=at(10), next_attempt="r-3"),
    )
    frame = Frame("r", at(0), at(12), ended=False, ranks=1, attempts=attempts, outages=outages)
    records: Records = {
        "r-1": {0: seen(*(step(n, n, n + 1) for n in range(6)))},
        "r-2": {0: seen(step(4, 6, 7), step(5, 7, 8), step(6, 8, 9))},
        "r-3": {0: seen(step(2, 9, 10), step(3, 10, 11), step(4, 11, 12))},
    }
    assert sums(ledger(with_firsts(frame, records), records)) == {
        ("productive", ""): 2 + 2,
        ("lost_progress", "i1"): 2,
        ("lost_progress", "i2"): 2 + 2,
        ("restart", "i1"): 1,
        ("restart", "i2"): 1,
    }


def test_a_checkpoint_in_a_lost_step_stays_a_checkpoint() -> None:
    frame, records = killed()
    steps = (*records["r-1"][0].steps[:5], step(5, 9, 10, checkpoint=0.25))
    records["r-1"] = {rank: seen(*steps) for rank in (0, 1)}
    found = sums(ledger(frame, records), rank=0)
    assert (found["checkpoint", ""], found["lost_progress", "i1"]) == (0.25, pytest.approx(3.4 - 0.25))


def test_a_failure_that_no_incident_explains_is_accounted_for_without_one() -> None:
    """The control plane was away: the rank died at 5, the launcher saw the command end at 6, restarted at 8, first step at 10."""
    attempts = (Attempt("r-1", at(0), at(6), 1), Attempt("r-2", at(8)))
    frame = Frame("r", at(0), at(11), ended=False, ranks=1, attempts=attempts, exits={("r-1", 0): at(5)})
    records: Records = {"r-1": {0: seen(step(0, 1, 5))}, "r-2": {0: seen(step(1, 9, 10), step(2, 10, 11))}}
    assert sums(ledger(with_firsts(frame, records), records)) == {
        ("init", ""): 1,
        ("productive", ""): 5,
        ("detect", ""): 1,
        ("act", ""): 2,
        ("restart", ""): 2,
    }


@pytest.mark.parametrize("recovers", [True, False])
def test_an_attempt_that_fails_while_its_incident_goes_on_is_charged_to_that_incident(recovers: bool) -> None:
    """r-1 dies at 19 s after steps 0-9; r-2 dies at its start; r-3 resumes at step 8, or there is none and the run fails."""
    first, third = tuple(step(n, 9 + n, 10 + n) for n in range(10)), tuple(step(n, 37 + n, 38 + n) for n in range(8, 23))
    attempts = (Attempt("r-1", at(0), at(20), 1), Attempt("r-2", at(25), at(35), 1), Attempt("r-3", at(40)))
    times = {"onset": at(19), "detected": at(20), "located": at(20), "acted": at(21)}
    outage = Outage("i1", "r-1", **times, recovered=at(46), resolved=at(50), next_attempt="r-3")
    if not recovers:
        attempts, outage = attempts[:2], replace(outage, recovered=None, next_attempt="r-2")
    frame = Frame("r", at(0), at(60), not recovers, 1, attempts, (outage,), exits={("r-1", 0): at(19), ("r-2", 0): at(34)})
    records: Records = {"r-1": {0: seen(*first)}, "r-2": {0: RankRecords(signs=(at(26), at(34)))}}
    if recovers:
        records["r-3"] = {0: seen(*third)}
    found = sums(ledger(with_firsts(frame, records), records))
    assert sum(found.values()) == 60
    assert {category for category, incident in found if not incident} == {"init", "productive"}
    if recovers:
        assert found["lost_progress", "i1"] == 2
        assert found["productive", ""] == 8 + 14


def test_a_rank_that_died_before_its_first_step_is_covered_all_the_same() -> None:
    frame = Frame("r", at(0), at(5), ended=True, ranks=2, attempts=(Attempt("r-1", at(1), at(4), 1),), exits={("r-1", 1): at(3)})
    found = ledger(frame, {})
    assert sums(found, rank=1) == {("init", ""): 3, ("detect", ""): 1, ("act", ""): 1}
    assert sum(sums(found, rank=0).values()) == 5


def test_a_run_without_an_attempt_yet_is_starting() -> None:
    assert sums(ledger(Frame("r", at(0), at(3), ended=False, ranks=2), {})) == {("init", ""): 6}


def test_an_attempt_that_shows_no_telemetry_is_unknown_after_a_minute() -> None:
    frame = Frame("r", at(0), at(100), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    assert sums(ledger(frame, {})) == {("init", ""): 60, ("unknown", ""): 40}


def test_silence_after_the_last_step_is_unknown_and_not_productive() -> None:
    steps = tuple(step(n, n, n + 1) for n in range(5))
    frame = Frame("r", at(0), at(30), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    records: Records = {"r-1": {0: seen(*steps, until=8)}}
    assert sums(ledger(with_firsts(frame, records), records)) == {("productive", ""): 8, ("unknown", ""): 22}


def test_silence_that_steps_read_later_explain_is_not_unknown() -> None:
    """The agent was dead from 3 to 20 s and read the ring when it came back."""
    steps = tuple(step(n, n, n + 1) for n in range(25))
    frame = Frame("r", at(0), at(25), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    records: Records = {"r-1": {0: RankRecords(steps=steps, signs=(at(0), at(25)), silences=((at(3), at(20)),))}}
    assert sums(ledger(with_firsts(frame, records), records)) == {("productive", ""): 25}


def test_steps_whose_records_were_overwritten_count_as_that_many_steps() -> None:
    """Steps 1-9 are missing: ten steps' time for ten steps is no slow step."""
    frame = Frame("r", at(0), at(12), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    records: Records = {"r-1": {0: seen(step(0, 0, 1), step(10, 10, 11), step(11, 11, 12))}}
    assert sums(ledger(with_firsts(frame, records), records, Pace(S, round(1.2 * S)))) == {("productive", ""): 12}


def test_slow_is_what_a_step_takes_beyond_the_runs_healthy_mean_less_its_phases() -> None:
    """Healthy 1 s, limit 1.2 s. 1.1 s is scatter; 4 s of which 1 s is checkpoint has 2 s too many; so has the first: warm-up."""
    steps = (step(0, 0, 3), step(1, 3, 4.1), step(2, 4.1, 8.1, checkpoint=1))
    frame = Frame("r", at(0), at(8.1), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    records: Records = {"r-1": {0: seen(*steps)}}
    assert sums(ledger(with_firsts(frame, records), records, Pace(S, round(1.2 * S)))) == {
        ("init", ""): 2,
        ("productive", ""): pytest.approx(1 + 1.1 + 1),
        ("slow", ""): 2,
        ("checkpoint", ""): 1,
    }


def test_an_incident_takes_no_step_that_went_on_meanwhile() -> None:
    """A false alarm from 3 s to 6 s while the run steps on; and a step of 4 s that hung while it was open."""
    steps = (*(step(n, n, n + 1) for n in range(6)), step(6, 6, 10))
    frame = Frame("r", at(0), at(10), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    frame = replace(frame, outages=(Outage("i", "r-1", at(3), at(4), at(4), resolved=at(9)),))
    records: Records = {"r-1": {0: seen(*steps)}}
    assert sums(ledger(with_firsts(frame, records), records, Pace(S, round(1.2 * S)))) == {
        ("productive", ""): 6,
        ("act", "i"): 3,
        ("slow", ""): 1,
    }


def test_a_long_run_is_cut_into_parts_of_ten_minutes_and_few_entries() -> None:
    steps = tuple(step(n, n, n + 1, data_wait=0.1) for n in range(1800))
    frame = Frame("r", at(0), at(1800), ended=False, ranks=1, attempts=(Attempt("r-1", at(0)),))
    records: Records = {"r-1": {0: seen(*steps)}}
    found = ledger(with_firsts(frame, records), records)
    assert [e.part for e in found] == sorted(e.part for e in found)
    assert {e.part for e in found} == {0, 1, 2}
    assert len(found) == 30 * 2
    assert sums(found) == {("data_wait", ""): pytest.approx(180), ("productive", ""): pytest.approx(1620)}


def test_telemetry_loss_halts_no_run_and_a_crash_does() -> None:
    assert not halts("telemetry_lost", "r-1")
    assert halts("rank_crash", "r-1")
    assert not halts("filesystem_full", "")
    assert halts("filesystem_full", "r-1"), "the attempt failed by it"
    assert halts("restart_loop", "r-1"), "the failures that became one are still charged to their incident"


# --- against a reference, on whole seconds ----------------------------------------------------------------------------

TICKS = 200


@st.composite
def histories(draw: st.DrawFn) -> tuple[Frame, Records, Pace | None]:
    """Runs of up to 200 s with what can befall them; records need not respect the attempt's end."""
    ranks = draw(st.integers(1, 2))
    starts = sorted(draw(st.lists(st.integers(0, TICKS - 20), min_size=1, max_size=3, unique=True)))
    end = draw(st.integers(starts[-1] + 1, TICKS))
    attempts, records, exits = [], {}, {}
    for n, start in enumerate(starts):
        ended = draw(st.none() | st.integers(start, end))
        attempts.append(Attempt(f"r-{n + 1}", at(start), None if ended is None else at(ended), draw(st.sampled_from([0, 1, None]))))
        for rank in range(ranks):
            records.setdefault(f"r-{n + 1}", {})[rank] = draw(rank_records(start))
            if draw(st.booleans()):
                exits[f"r-{n + 1}", rank] = at(draw(st.integers(start, end)))
    outages = tuple(draw(outage(n, len(starts), end)) for n in range(draw(st.integers(0, 2))))
    frame = Frame("r", at(0), at(end), draw(st.booleans()), ranks, tuple(attempts), outages, {}, exits)
    mean = draw(st.integers(1, 4))
    pace = draw(st.none() | st.just(Pace(mean * S, (mean + 1) * S)))
    return with_firsts(frame, records), records, pace


@st.composite
def rank_records(draw: st.DrawFn, start: int) -> RankRecords:
    steps, phases, cursor = [], [], start
    number = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 8))):
        gap = draw(st.sampled_from([0, 0, 1, 3, 14]))
        if gap >= 3 and draw(st.booleans()):
            phases.append(
                PhaseSpan(at(cursor + 1), at(cursor + 2), draw(st.sampled_from([Category.CHECKPOINT, Category.EVAL, Category.COMPILE])))
            )
        length = draw(st.integers(1, 9))
        chosen = draw(st.lists(st.sampled_from(["data_wait", "checkpoint", "eval", "compile"]), unique=True, max_size=2))
        given_phases = {name: draw(st.integers(0, 3)) for name in chosen}
        steps.append(step(number, cursor + gap, cursor + gap + length, **given_phases))
        cursor += gap + length
        number += draw(st.sampled_from([1, 1, 1, 3]))
    signs, silences = None, ()
    if draw(st.booleans()):
        last = draw(st.integers(start, start + 60))
        signs = (at(start), at(last))
        if last - start > 15 and draw(st.booleans()):
            silences = ((at(start + 1), at(draw(st.integers(start + 2, last)))),)
    return RankRecords(tuple(steps), tuple(phases), signs, silences)


@st.composite
def outage(draw: st.DrawFn, number: int, attempts: int, end: int) -> Outage:
    onset = draw(st.integers(0, end))
    later = st.none() | st.integers(onset - 3, end).map(at)
    return Outage(
        f"i{number}",
        f"r-{draw(st.integers(1, attempts))}" + draw(st.sampled_from(["", ".1"])),
        at(onset) + number,  # onsets differ, so that their order is plain
        draw(later),
        draw(later),
        draw(later),
        draw(later),
        draw(later),
        draw(st.sampled_from(["", f"r-{draw(st.integers(1, attempts))}"])),
    )


@given(histories())
@settings(max_examples=60, deadline=None)
def test_entries_are_disjoint_ordered_gap_free_and_sum_exactly(history: tuple[Frame, Records, Pace | None]) -> None:
    frame, records, pace = history
    found = ledger(frame, records, pace)
    for rank in range(frame.ranks):
        cursor = frame.start
        for e in (e for e in found if e.rank == rank):
            assert to_micros(e.started_at) == cursor
            assert e.ended_at > e.started_at
            cursor = to_micros(e.ended_at)
        assert cursor == frame.end
    assert sum(to_micros(e.ended_at) - to_micros(e.started_at) for e in found) == (frame.end - frame.start) * frame.ranks


@given(histories())
@settings(max_examples=60, deadline=None)
def test_every_minute_of_every_rank_is_what_the_reference_paints(history: tuple[Frame, Records, Pace | None]) -> None:
    frame, records, pace = history
    frame = replace(frame, outages=tuple(replace(o, onset=o.onset // S * S) for o in frame.outages))
    found: Counter[tuple[int, int, str, str]] = Counter()
    for e in ledger(frame, records, pace):
        low, high = (to_micros(e.started_at) - T0) // S, (to_micros(e.ended_at) - T0) // S
        for second in range(low, high):
            found[e.rank, second // 60, e.category, e.incident] += 1
    painted: Counter[tuple[int, int, str, str]] = Counter()
    for rank in range(frame.ranks):
        for second, (category, incident) in enumerate(Reference(frame, records, pace, rank).paint()):
            painted[rank, second // 60, category, incident] += 1
    assert found == painted


class Reference:
    """Paints one rank second by second, by the rules as they are written down, in lists of (category, incident)."""

    def __init__(self, frame: Frame, records: Records, pace: Pace | None, rank: int) -> None:
        self.frame, self.pace, self.rank = frame, pace, rank
        self.records = records
        self.end = (frame.end - T0) // S
        self.canvas: list[tuple[str, str]] = [("idle", "")] * self.end

    def put(self, start: int, end: int, what: tuple[str, str], low: int = 0, high: int = 10**6) -> None:
        for second in range(max(start, low, 0), min(end, high, self.end)):
            self.canvas[second] = what

    def second(self, micros: int | None) -> int | None:
        return None if micros is None else (micros - T0) // S

    def bounds(self, index: int) -> tuple[int, int, int]:
        """Start and end of the attempt's segment, and when the rank stopped."""
        attempts = self.frame.attempts
        start = 0 if index == 0 else self.second(attempts[index].start)
        end = self.end if index + 1 == len(attempts) else self.second(attempts[index + 1].start)
        ended = self.second(attempts[index].end)
        exited = self.second(self.frame.exits.get((attempts[index].name, self.rank)))
        assert start is not None
        assert end is not None
        return start, end, max(start, min(t for t in (end, ended, exited) if t is not None))

    def failure(self, index: int) -> bool:
        attempt = self.frame.attempts[index]
        return index + 1 < len(self.frame.attempts) or (attempt.end is not None and attempt.exit_code != 0)

    def of(self, outage: Outage) -> int:
        return int(outage.attempt.removeprefix("r-").split(".")[0]) - 1

    def mended_by(self, o: Outage) -> range:
        """The attempts that tried to mend it and failed: those before the one that recovered from it; where none did, that one too."""
        if not o.next_attempt:
            return range(0)
        return range(self.of(o) + 1, int(o.next_attempt.removeprefix("r-")) - (o.recovered is not None))

    def outages(self) -> list[Outage]:
        found = list(self.frame.outages)
        for n, a in enumerate(self.frame.attempts):
            if self.failure(n) and n not in [self.of(o) for o in self.frame.outages]:
                _, end, _ = self.bounds(n)
                ended = end if a.end is None else min(end, (a.end - T0) // S)
                first = min([ended, *((t - T0) // S for (name, _), t in self.frame.exits.items() if name == a.name)])
                whose = [o.incident for o in self.frame.outages if n in self.mended_by(o)]
                found.append(Outage((*whose, "")[0], a.name, at(first), at(ended), at(ended)))
        return sorted(found, key=lambda o: (o.onset, o.incident))

    def paint(self) -> list[tuple[str, str]]:
        normal: set[tuple[int, int]] = set()
        for n in range(len(self.frame.attempts)):
            self.paint_work(n, normal)
        before = list(self.canvas)
        for o in self.outages():
            self.paint_outage(o, normal, before)
        for n in range(len(self.frame.attempts)):
            self.paint_unknown(n)
        return self.canvas

    def paint_work(self, n: int, normal: set[tuple[int, int]]) -> None:
        start, end, stop = self.bounds(n)
        a = self.frame.attempts[n]
        r = self.records[a.name][self.rank]
        guilty = [o.incident for o in self.outages() if self.of(o) == n]
        phase_at = {s: p.category.value for p in r.phases for s in range((p.start - T0) // S, (p.end - T0) // S)}
        lead = (r.steps[0].start - T0) // S if r.steps else stop
        for s in range(start, min(lead, stop)):
            self.put(s, s + 1, (phase_at.get(s, "init"), ""), start, end)
        previous = None
        for t in r.steps:
            begin = (t.start - T0) // S if previous is None else (previous.end - T0) // S
            colours = [phase_at.get(s, "productive") for s in range(begin, (t.start - T0) // S)]
            room = (t.end - t.start) // S
            taken = {}
            for category in Category:
                taken[category.value] = min(room, t.phases.get(category, 0) // S)
                room -= taken[category.value]
            colours += ["compile"] * taken["compile"] + ["data_wait"] * taken["data_wait"] + ["productive"] * room
            colours += ["eval"] * taken["eval"] + ["checkpoint"] * taken["checkpoint"]
            if self.too_slow(colours, 1 if previous is None else t.step - previous.step, "init" if previous is None else "slow"):
                normal.update((n, s) for s in range(begin, begin + len(colours)))
            gone = self.lost(n, t.step)
            for s, colour in enumerate(colours, begin):
                lost = gone is not None and colour in ("data_wait", "slow", "productive")
                self.put(s, s + 1, ("lost_progress", gone or "") if lost else (colour, ""), start, end)
            previous = t
        if previous is not None:
            self.paint_tail(n, (previous.end - T0) // S, phase_at, guilty)

    def too_slow(self, colours: list[str], count: int, new: str) -> bool:
        """Recolours what is beyond the healthy mean; True where the step took less than twice its usual time."""
        work = colours.count("productive")
        if self.pace and work > self.pace.limit // S * count:
            self.recolour(colours, work - self.pace.mean // S * count, new)
        return self.pace is not None and work <= 2 * self.pace.limit // S * count

    def paint_tail(self, n: int, begin: int, phase_at: dict[int, str], guilty: list[str]) -> None:
        start, end, stop = self.bounds(n)
        a = self.frame.attempts[n]
        going = n + 1 == len(self.frame.attempts) and a.end is None and not self.frame.ended
        colours = [phase_at.get(s, "productive") for s in range(begin, stop)]
        if not going and not self.failure(n):
            colours = ["idle" if c == "productive" else c for c in colours]
        elif going and (a.name, self.rank) not in self.frame.exits:
            self.too_slow(colours, 1, "slow")
        else:
            colours = ["lost_progress" if c == "productive" else c for c in colours]
        for s, colour in enumerate(colours, begin):
            self.put(s, s + 1, (colour, guilty[0] if guilty and colour == "lost_progress" else ""), start, end)

    def recolour(self, colours: list[str], amount: int, new: str) -> None:
        for s in reversed(range(len(colours))):
            if colours[s] == "productive" and amount > 0:
                colours[s] = new
                amount -= 1

    def lost(self, n: int, number: int) -> str | None:
        for later in range(n + 1, len(self.frame.attempts)):
            firsts = [r.steps[0].step for r in self.records[f"r-{later + 1}"].values() if r.steps]
            if firsts and min(firsts) <= number:
                return next((o.incident for o in self.outages() if self.of(o) == later - 1), "")
        return None

    def paint_outage(self, o: Outage, normal: set[tuple[int, int]], before: list[tuple[str, str]]) -> None:
        attempts = self.frame.attempts
        names = [a.name for a in attempts]
        following = names.index(o.next_attempt) if o.next_attempt else self.of(o) + 1 if self.of(o) + 1 < len(names) else None
        over = next((self.second(t) for t in (o.recovered, o.resolved) if t is not None), self.end)
        end = over if following is None else self.second(attempts[following].start) or 0
        onset = self.second(o.onset) or 0
        detected = end if o.detected is None else max(onset, self.second(o.detected) or 0)
        located = self.second(o.located if o.located is not None else o.acted)
        for s in range(onset, min(end, self.end)):
            owner = max([n for n, a in enumerate(attempts) if (a.start - T0) // S <= s], default=0)
            if s >= 0 and (owner, s) not in normal:
                part = "detect" if s < detected else "locate" if located is None or s < located else "act"
                self.canvas[s] = (part, o.incident)
        if following is not None:
            a = attempts[following]
            first = self.frame.firsts.get((a.name, self.rank))
            until = self.second(first.end if first else o.recovered)
            limit = self.end if following + 1 == len(attempts) else self.second(attempts[following + 1].start) or 0
            if a.end is not None:
                limit = min(limit, (a.end - T0) // S)
            self.put((a.start - T0) // S, limit if until is None else min(until, limit), ("restart", o.incident))

    def paint_unknown(self, n: int) -> None:
        start, end, stop = self.bounds(n)
        r = self.records[self.frame.attempts[n].name][self.rank]
        signs = [t.end for t in r.steps] + [p.end for p in r.phases] + ([r.signs[1]] if r.signs else [])
        if not signs:
            self.put(start + 60, stop, ("unknown", ""), start, end)
            return
        stepped = range((r.steps[0].start - T0) // S, (r.steps[-1].end - T0) // S) if r.steps else range(0)
        last = (max(signs) - T0) // S
        silent = [s for low, high in r.silences if high - low > 10 * S for s in range((low - T0) // S, (high - T0) // S)]
        silent += list(range(last, stop)) if stop - last > 10 else []
        for s in silent:
            if s not in stepped and s < stop:
                self.put(s, s + 1, ("unknown", ""), start, end)
