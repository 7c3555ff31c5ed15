"""The ledger with a real store: what is read, what is written, and what happens when the job is killed or the store is away."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from structlog.testing import capture_logs

from pipeline.catalog.events import PHASE, RANK_EXITED
from pipeline.clock import to_micros
from pipeline.errors import QueryTimeout
from pipeline.loss import loss_sentence
from pipeline.migrate import migrate
from pipeline.patience import Patient
from pipeline.queries.ledger_pending import ledger_pending
from pipeline.queries.ledger_written import ledger_written
from pipeline.queries.run_spending import run_spending
from pipeline.queries.run_work import run_work
from pipeline.queries.run_world import run_world
from pipeline.records import AttemptTransition, Event, IncidentTransition, LedgerEntry, Live, Record, RunTransition, Step
from pipeline.settings import Settings
from pipeline.store import Store
from slo import jobs
from slo.figures import incident_costs
from slo.ledger_job import LATE, LedgerJob
from slo.ledger_now import compute_run, read_frame
from slo.pace import pace

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


class Life:
    """Writes a run's life into a store."""

    def __init__(self, store: Store, run: str = "r") -> None:
        self.store, self.run, self._count = store, run, 0

    def put(self, *records: Record) -> None:
        for record in records:
            self._count += 1
            self.store.insert([record], token=f"{self.run}-{self._count}")

    def run_is(self, state: str, second: float) -> None:
        self.put(RunTransition(old_state="", new_state=state, reason="", actor="t", at=at(second), run=self.run, node="n"))

    def attempt_is(self, attempt: str, state: str, second: float, code: int | None = None, ranks: int = 2) -> None:
        self.put(
            AttemptTransition(
                old_state="",
                new_state=state,
                reason="",
                actor="t",
                at=at(second),
                run=self.run,
                attempt=attempt,
                launch=1,
                node="n",
                ranks=ranks,
                exit_code=code,
            )
        )

    def steps(self, attempt: str, numbers: range, first: float, length: float = 1.0, ranks: int = 2) -> None:
        rows: list[Record] = []
        for k, number in enumerate(numbers):
            for rank in range(ranks):
                start, end = at(first + k * length), at(first + (k + 1) * length)
                rows.append(Step(run=self.run, attempt=attempt, node="n", rank=rank, step=number, started_at=start, ended_at=end, data=0.1))
        self._count += 1
        self.store.insert(rows, token=f"{self.run}-{self._count}")

    def event(self, kind: str, attempt: str, rank: int, second: float, code: str = "", duration: float | None = None) -> None:
        self._count += 1
        self.store.insert(
            [
                Event(
                    id=str(self._count),
                    at=at(second),
                    kind=kind,
                    layer="framework",
                    severity="info",
                    run=self.run,
                    attempt=attempt,
                    rank=rank,
                    code=code,
                    duration=duration,
                )
            ],
            token=f"{self.run}-{self._count}",
        )

    def live(self, attempt: str, rank: int, seconds: range, state: str = "R") -> None:
        self._count += 1
        rows: list[Record] = [
            Live(run=self.run, attempt=attempt, node="n", rank=rank, at=at(s), pid=1, process_state=state) for s in seconds
        ]
        self.store.insert(rows, token=f"{self.run}-{self._count}")

    def incident(self, second: float, state: str, **times: float | str) -> None:
        given = {k: at(v) if not isinstance(v, str) else v for k, v in times.items()}
        self.put(
            IncidentTransition(
                old_state="",
                new_state=state,
                reason="",
                actor="t",
                at=at(second),
                incident="i1",
                key="k",
                fault="rank_crash",
                layer="framework",
                severity="critical",
                title="",
                run=self.run,
                attempt="r-1",
                **given,  # type: ignore[arg-type]
            )
        )

    def killed_and_restarted(self) -> None:
        """The hand-worked case of tests/slo/test_ledger.py, with a data phase of 0.1 s in every step, up to 22 s."""
        self.run_is("started", 0)
        self.attempt_is("r-1", "issued", 0)
        self.attempt_is("r-1", "starting", 0)
        self.event(PHASE.name, "r-1", 0, 3, "load_checkpoint", 1.0)
        self.steps("r-1", range(6), 4)
        for rank, second in ((1, 10.4), (0, 10.9)):
            self.event(RANK_EXITED.name, "r-1", rank, second, "-9")
        self.attempt_is("r-1", "ended", 11, 1)
        self.incident(11, "open", onset=10.4, detected_at=11)
        self.attempt_is("r-2", "issued", 12)
        self.attempt_is("r-2", "starting", 13)
        self.steps("r-2", range(3, 8), 17)
        self.incident(
            20, "resolved", onset=10.4, detected_at=11, located_at=11.5, acted_at=12, recovered_at=18, resolved_at=20, next_attempt="r-2"
        )


EXPECTED = {
    ("init", ""): 4 + 3,
    ("load_checkpoint", ""): 1,
    ("data_wait", ""): 2 * (0.3 + 0.4),
    ("productive", ""): 2 * (2.7 + 3.6),
    ("lost_progress", "i1"): 2 * 3.4,
    ("detect", "i1"): 2 * 0.6,
    ("locate", "i1"): 2 * 0.5,
    ("act", "i1"): 2 * 1.5,
    ("restart", "i1"): 2 * 5,
}


def sums(entries: list[LedgerEntry]) -> dict[tuple[str, str], float]:
    total: dict[tuple[str, str], float] = {}
    for e in entries:
        key = (e.category, e.incident)
        total[key] = total.get(key, 0) + (to_micros(e.ended_at) - to_micros(e.started_at)) / 1e6
    return total


def kept(store: Store, run: str = "r") -> dict[tuple[str, str], float]:
    return {(s.category, s.incident): s.gpu_seconds for s in run_spending(store, run) if s.gpu_seconds}


def ticking(second: float) -> Callable[[], datetime]:
    return lambda: at(second)


def test_a_run_is_as_wide_as_the_ranks_that_were_started_on_all_its_nodes(store: Store) -> None:
    """The launcher that speaks for the run saw one rank; the other nodes' launchers told of theirs."""
    life = Life(store)
    assert run_world(store, "r") == 0
    life.attempt_is("r-1", "running", 1, ranks=1)
    assert run_world(store, "r") == 1
    for rank in (0, 1, 2):
        life.event("rank_started", "r-1", rank, 1)
    assert run_world(store, "r") == 3


def test_a_run_read_from_the_store_gives_the_ledger_worked_out_by_hand(store: Store) -> None:
    Life(store).killed_and_restarted()
    found = compute_run(store, "r", at(22))
    assert sums(found) == pytest.approx(EXPECTED)
    assert sum(to_micros(e.ended_at) - to_micros(e.started_at) for e in found) == 22_000_000 * 2
    assert loss_sentence(incident_costs(found)["i1"]) == "lost 22 GPU-s: 1 detect, 1 locate, 3 act, 10 restart, 7 lost progress"


def test_a_run_that_nobody_knows_has_no_ledger(store: Store) -> None:
    assert compute_run(store, "nobody", at(0)) == []


def test_the_job_writes_what_is_computed_and_nothing_more_while_nothing_changes(store: Store) -> None:
    life = Life(store)
    life.killed_and_restarted()
    life.attempt_is("r-2", "ended", 22, 0)
    life.run_is("finished", 22)
    job = LedgerJob(store, ticking(30))
    assert job.run_pass() == 2
    assert kept(store) == pytest.approx(sums(compute_run(store, "r", at(30))))
    assert sum(kept(store).values()) == pytest.approx(44)
    assert job.run_pass() == 0
    assert LedgerJob(store, ticking(40)).run_pass() == 0, "a new process goes on from the watermark"


def test_a_run_that_goes_on_gets_a_new_generation_of_its_last_piece_only(store: Store) -> None:
    Life(store).killed_and_restarted()
    LedgerJob(store, ticking(22)).run_pass()
    job = LedgerJob(store, ticking(25))
    assert job.run_pass() == 1
    assert {(w.attempt, w.generation) for w in ledger_written(store, "r")} == {("r-1", 1), ("r-2", 2)}
    assert sum(kept(store).values()) == pytest.approx(50)


def test_steps_become_lost_when_the_next_attempt_goes_back_before_them(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    life.attempt_is("r-1", "starting", 0)
    life.steps("r-1", range(10), 0)
    LedgerJob(store, ticking(10)).run_pass()
    assert kept(store) == pytest.approx({("data_wait", ""): 2, ("productive", ""): 18})
    life.attempt_is("r-1", "ended", 10, 1)
    life.attempt_is("r-2", "starting", 10)
    life.steps("r-2", range(4, 6), 12)
    LedgerJob(store, ticking(14)).run_pass()
    assert kept(store)["lost_progress", ""] == pytest.approx(12)
    assert kept(store)["productive", ""] == pytest.approx(2 * (4 * 0.9 + 0.9))


def test_a_step_that_comes_in_late_is_accounted_for(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    life.attempt_is("r-1", "starting", 0, ranks=1)
    life.steps("r-1", range(2), 0, ranks=1)
    life.run_is("finished", 700)
    job = LedgerJob(store, ticking(705))
    job.run_pass()
    assert kept(store)["productive", ""] == pytest.approx(1.8)
    life.steps("r-1", range(2, 5), 2, ranks=1)
    assert job.run_pass() == 2, "the part that it fell into, and the one after it, whose tail began there"
    assert kept(store)["productive", ""] == pytest.approx(4.5)


def test_a_run_is_closed_some_time_after_its_end_and_costs_nothing_from_then_on(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    life.run_is("finished", 5)
    LedgerJob(store, ticking(6)).run_pass()
    job = LedgerJob(store, ticking(6 + LATE.total_seconds()))
    assert job.run_pass() == 0
    life.run_is("failed", 7)  # nothing of a closed run is looked at
    assert job.run_pass() == 0
    assert kept(store) == pytest.approx({("init", ""): 5})


def test_a_closed_run_that_is_started_again_is_accounted_for_and_closed_once_more(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    life.run_is("finished", 5)
    late = LATE.total_seconds()
    closing = LedgerJob(store, ticking(6 + late))
    assert (closing.run_pass(), closing.run_pass()) == (1, 0)
    life.run_is("started", 1000)
    job = LedgerJob(store, ticking(1010))
    assert job.run_pass() > 0
    assert sum(kept(store).values()) == pytest.approx(1010)
    life.run_is("finished", 1020)
    again = LedgerJob(store, ticking(1021 + late))
    assert (again.run_pass(), again.run_pass(), ledger_pending(store, "ledger_closed:")) == (1, 0, [])
    assert sum(kept(store).values()) == pytest.approx(1020)


def test_a_run_of_very_many_attempts_keeps_its_first_ones(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    rows = [
        AttemptTransition(
            old_state="", new_state=state, reason="", actor="t", at=at(n + part), run="r", attempt=f"r-{n}", launch=n, exit_code=1
        )
        for n in range(1, 510)
        for state, part in (("starting", 0), ("ended", 0.5))
    ]
    store.insert(rows, token="attempts")
    found = [a.name for a in (read_frame(store, "r", at(2000)) or pytest.fail("no such run")).attempts]
    assert (found[0], len(found)) == ("r-1", 509)


def test_a_run_whose_ledger_cannot_be_computed_keeps_no_other_run_waiting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Life(store, "a").run_is("started", 0)
    Life(store, "b").run_is("started", 1)
    job = LedgerJob(store, ticking(5))
    update = job._update
    refused = QueryTimeout("Code: 159. Too slow", 159)
    monkeypatch.setattr(job, "_update", lambda run: update(run) if run == "b" else (_ for _ in ()).throw(refused))
    with capture_logs() as logs:
        assert job.run_pass() == 1
    assert [(e["event"], e["run"]) for e in logs] == [("ledger_of_run_fails", "a")]
    assert kept(store, "b") == pytest.approx({("init", ""): 4})


def test_a_segment_that_turns_out_not_to_exist_is_emptied(store: Store) -> None:
    """The run was thought to go on at 650 s; its end, at 590 s, came in late: its second part never was."""
    life = Life(store)
    life.run_is("started", 0)
    LedgerJob(store, ticking(650)).run_pass()
    assert sum(kept(store).values()) == pytest.approx(650)
    life.run_is("finished", 590)
    job = LedgerJob(store, ticking(660))
    assert job.run_pass() == 2
    assert sum(kept(store).values()) == pytest.approx(590)
    assert job.run_pass() == 0


def test_a_job_killed_between_its_rows_and_its_watermark_counts_nothing_twice(store: Store) -> None:
    Life(store).killed_and_restarted()
    first = LedgerJob(store, ticking(22))
    first._mark = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        first.run_pass()
    LedgerJob(store, ticking(22)).run_pass()
    assert kept(store) == pytest.approx(EXPECTED)


def test_a_store_that_is_away_is_logged_once_and_the_job_goes_on_when_it_is_back(start_store: Callable[..., Any]) -> None:
    process = start_store()
    store = process.connect()
    migrate(store, process.settings)
    mine = Store.connect(process.settings)
    life = Life(mine)
    life.run_is("started", 0)
    job = Patient("ledger", LedgerJob(mine, ticking(5)).tick)
    process.stop()
    with capture_logs() as lines:
        job()
        job()
        start_store(process.settings.state_dir, process.settings.store.port)
        job()
    assert [line["event"] for line in lines] == ["job_fails", "job_works_again"]
    assert kept(mine) == pytest.approx({("init", ""): 5})
    mine.close()
    store.close()


def test_silence_of_the_agent_is_unknown_and_a_dead_process_is_no_sign_of_life(store: Store) -> None:
    life = Life(store)
    life.run_is("started", 0)
    life.attempt_is("r-1", "starting", 0, ranks=1)
    life.steps("r-1", range(5), 0, ranks=1)
    life.live("r-1", 0, range(0, 8))
    life.live("r-1", 0, range(30, 33))
    life.live("r-1", 0, range(33, 50), state="X")
    found = sums(compute_run(store, "r", at(50)))
    assert found["unknown", ""] == pytest.approx((30 - 7) + (50 - 32))


def test_the_stores_healthy_step_is_that_of_the_pure_rule(store: Store) -> None:
    life = Life(store)
    lengths = [1.0, 1.1, 0.9, 1.05, 1.0, 4.0, 1.0, 0.95, 1.02, 1.0, 1.2, 1.01, 9.0]
    cursor = 0.0
    for number, length in enumerate(lengths):
        life.steps("r-1", range(number, number + 1), cursor, length, ranks=1)
        cursor += length
    expected = pace([round((length - 0.1) * 1e6) for length in lengths[1:]])
    found = run_work(store, "r", at(100), 3)
    assert expected is not None
    assert (found.steps, found.mean_us, found.limit_us) == (12, expected.mean, expected.limit)
    assert run_work(store, "nobody", at(100), 3).steps == 0


def test_steps_and_phases_across_the_parts_edges_are_counted_once(store: Store) -> None:
    """Steps of 2 s; the one from 590 s on takes 20 s, over the edge at 600; a checkpoint lies between two steps from 1195 to 1205.

    Of a healthy step's 2 s, 0.1 s is data. Too long are the step of 20 s by 18, the 1 s before the checkpoint, and the
    11 s since the last step, at 1309, of which one step's 1.9 may still be work.
    """
    life = Life(store)
    life.run_is("started", 0)
    life.attempt_is("r-1", "starting", 0, ranks=1)
    life.steps("r-1", range(295), 0, 2, ranks=1)
    life.steps("r-1", range(295, 296), 590, 20, ranks=1)
    life.steps("r-1", range(296, 588), 610, 2, ranks=1)
    life.event(PHASE.name, "r-1", 0, 1205, "checkpoint", 10.0)
    life.steps("r-1", range(588, 640), 1205, 2, ranks=1)
    life.live("r-1", 0, range(0, 1320, 5))
    found = compute_run(store, "r", at(1320))
    assert {e.part for e in found} == {0, 1, 2}
    assert sums(found) == pytest.approx(
        {
            ("data_wait", ""): 640 * 0.1,
            ("checkpoint", ""): 10,
            ("slow", ""): 18 + 1 + (11 - 1.9),
            ("productive", ""): 640 * 1.9 + 1.9,
        }
    )
    assert sum(to_micros(e.ended_at) - to_micros(e.started_at) for e in found) == 1_320_000_000


def test_no_job_is_dropped_for_being_late_or_runs_twice_at_once(store: Store, store_settings: Settings) -> None:
    scheduler = BackgroundScheduler(timezone=UTC)
    jobs.register(scheduler, store_settings, store)
    jobs.register(scheduler, store_settings, store)
    scheduler.start(paused=True)
    found = {job.id: (job.misfire_grace_time, job.coalesce, job.max_instances) for job in scheduler.get_jobs()}
    assert found == dict.fromkeys(("slo.ledger", "slo.figures"), (None, True, 1))
    scheduler.shutdown()
