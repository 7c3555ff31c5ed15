"""The console's read models against sums worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from pipeline.catalog.layers import Phase
from pipeline.clock import utcnow
from pipeline.queries.attempt_exits import attempt_exits
from pipeline.queries.incident_cost import incident_cost
from pipeline.queries.incident_states import incident_states
from pipeline.queries.requests_about import requests_about
from pipeline.queries.run_checkpoints import run_checkpoints
from pipeline.queries.run_log_tail import run_log_tail
from pipeline.queries.run_losses import run_losses
from pipeline.queries.run_pace import run_pace
from pipeline.queries.run_phases import OTHER, run_phases
from pipeline.queries.run_ranks import run_ranks
from pipeline.queries.run_spending import run_spending
from pipeline.queries.run_states import run_states
from pipeline.queries.run_steps import run_steps
from pipeline.queries.run_world import run_world
from pipeline.queries.signs_of_life import signs_of_life
from pipeline.queries.spending_over_time import spending_over_time
from pipeline.records import AttemptTransition, Beat, Event, IncidentTransition, LedgerEntry, Live, Request, RunTransition, Step
from pipeline.store import Store

T0 = utcnow().replace(second=0, microsecond=0) - timedelta(minutes=10)  # a whole minute; old rows would be dropped


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def entry(
    start: float, end: float, category: str, *, rank: int = 0, generation: int = 1, incident: str = "", attempt: str = "r-1"
) -> LedgerEntry:
    return LedgerEntry(
        run="r",
        attempt=attempt,
        generation=generation,
        rank=rank,
        started_at=at(start),
        ended_at=at(end),
        category=category,
        incident=incident,
    )


def test_an_entry_is_split_over_the_minutes_that_it_crosses_and_clipped_to_the_window(store: Store) -> None:
    store.insert([entry(-30, 90, "productive"), entry(90, 100, "detect"), entry(90, 100, "detect", rank=1)], token="t")
    slices = spending_over_time(store, T0, at(180), width=60)
    assert [(s.at, s.category, s.gpu_seconds) for s in slices] == [
        (T0, "productive", 60.0),
        (at(60), "detect", 20.0),
        (at(60), "productive", 30.0),
    ]
    assert {s.until for s in slices if s.category == "detect"} == {at(100)}


def test_only_the_newest_generation_of_each_segment_is_counted(store: Store) -> None:
    store.insert([entry(0, 50, "productive"), entry(50, 60, "detect", incident="i")], token="g1")
    store.insert([entry(0, 40, "productive", generation=2), entry(40, 60, "detect", generation=2, incident="i")], token="g2")
    store.insert([entry(60, 65, "restart", attempt="r-2", incident="i")], token="other segment")
    assert {(s.category, s.incident): s.gpu_seconds for s in run_spending(store, "r")} == {
        ("productive", ""): 40.0,
        ("detect", "i"): 20.0,
        ("restart", "i"): 5.0,
    }
    assert [(c.category, c.gpu_seconds) for c in incident_cost(store, "i")] == [("detect", 20.0), ("restart", 5.0)]
    assert incident_cost(store, "nobody") == []
    assert sum(s.gpu_seconds for s in spending_over_time(store, T0, at(60), width=10)) == 60.0


@pytest.fixture
def stepped(store: Store) -> Store:
    """10 ranks x 100 steps of 1 s; rank 9 takes 1.5 s; each second has 0.25 s data and 0.5 s forward; loss is the step."""
    base = Step(run="r", attempt="r-1", node="n", rank=0, step=0, started_at=T0, ended_at=T0, data=0.25, forward=0.5)
    rows = [
        replace(base, rank=r, step=s, started_at=at(2 * s), ended_at=at(2 * s + (1.5 if r == 9 else 1.0)), loss=float(s), nonfinite="")
        for r in range(10)
        for s in range(100)
    ]
    rows[7] = replace(rows[7], loss=None, nonfinite="loss")
    store.insert(rows, token="steps")
    return store


def test_step_times_come_in_few_enough_points_of_the_slowest_ranks(stepped: Store) -> None:
    points = run_steps(stepped, "r", T0, at(300), bins=20, ranks=3)
    assert {p.rank for p in points} == {9, 0, 1}  # the slowest, then by number
    assert len(points) == 3 * 20
    assert [p.step for p in points if p.rank == 9] == list(range(0, 100, 5))
    assert {(p.seconds, p.longest) for p in points if p.rank == 9} == {(1.5, 1.5)}


def test_the_first_step_of_each_attempt_is_no_step_time(stepped: Store) -> None:
    again = Step(run="r", attempt="r-2", node="n", rank=0, step=40, started_at=at(250), ended_at=at(250.01))
    stepped.insert([again, replace(again, step=41, started_at=at(251), ended_at=at(252))], token="again")
    points = run_steps(stepped, "r", T0, at(300), bins=100, ranks=20)
    assert {p.step for p in points if p.attempt == "r-1"} == set(range(1, 100))
    assert [(p.step, p.seconds) for p in points if p.attempt == "r-2"] == [(41, 1.0)]
    later = run_steps(stepped, "r", at(100), at(240), bins=100, ranks=1)
    assert later[0].step == 50  # the first of the window, not of the attempt


def test_a_window_without_steps_gives_no_points(stepped: Store) -> None:
    assert run_steps(stepped, "r", at(-90), at(-60), bins=20, ranks=3) == []
    assert run_losses(stepped, "nobody", T0, at(300), bins=10) == []
    assert run_phases(stepped, "r", at(-90), at(-60), bins=20) == []


def test_the_loss_is_the_lowest_ranks_and_what_is_not_finite_is_counted(stepped: Store) -> None:
    points = run_losses(stepped, "r", T0, at(300), bins=50)
    assert [(p.step, p.loss) for p in points[:4]] == [(0, 0.5), (2, 2.5), (4, 4.5), (6, 6.0)]
    assert [p.nonfinite for p in points[:4]] == [0, 0, 0, 1]


def test_phases_and_the_rest_add_up_to_the_step(stepped: Store) -> None:
    points = run_phases(stepped, "r", T0, at(300), bins=10)
    assert {p.phase for p in points} == {Phase.DATA, Phase.FORWARD, OTHER}
    first = {p.phase: p.seconds for p in points if p.step == 0}
    assert first == {"data": pytest.approx(0.25), "forward": pytest.approx(0.5), OTHER: pytest.approx(1.05 - 0.75)}


def test_the_pace_is_the_median_up_to_the_last_step_however_long_ago_that_was(stepped: Store) -> None:
    (now,) = run_pace(stepped, ["r", "none"], seconds=60)
    assert (now.step, now.step_seconds, now.at, now.loss) == (99, 1.0, at(199.5), 99.0)
    slow = Step(run="r", attempt="r-2", node="n", rank=0, step=60, started_at=at(250), ended_at=at(254))
    stepped.insert([slow, replace(slow, run="other", started_at=at(0), ended_at=at(2))], token="slow")
    both = {p.run: (p.step, p.step_seconds, p.at) for p in run_pace(stepped, ["r", "other"], seconds=50)}
    assert both == {"r": (60, 4.0, at(254)), "other": (60, 2.0, at(2))}


def test_the_exits_of_an_attempt_are_each_ranks_last_word_inner_restarts_included(store: Store) -> None:
    end = Event(id="a", at=at(1), kind="rank_exited", layer="framework", severity="info", run="r", attempt="r-1", rank=0, code="1")
    other = replace(end, id="d", attempt="r-10")
    store.insert([end, replace(end, id="b", attempt="r-1.1", code=""), replace(end, id="c", rank=1, at=at(2)), other], token="e")
    assert {(e.attempt, e.rank, e.code) for e in attempt_exits(store, "r", "r-1")} == {
        ("r-1", 0, "1"), ("r-1.1", 0, ""), ("r-1", 1, "1"),
    }  # fmt: skip


def test_a_run_is_its_last_transition_with_its_newest_attempt(store: Store) -> None:
    run = RunTransition(old_state="", new_state="started", reason="", actor="l", at=T0, run="a", node="n", command="train.py")
    over = replace(run, old_state="started", new_state="failed", reason="gave up", at=at(50), command="", exit_code=3)
    store.insert([over, run, replace(run, run="b", at=at(10))], token="runs")
    attempt = AttemptTransition(old_state="", new_state="issued", reason="", actor="l", at=at(1), run="a", attempt="a-1", launch=1, ranks=4)
    second = replace(attempt, attempt="a-2", launch=2, at=at(20), new_state="ended")
    store.insert([replace(second, at=at(15), new_state="issued", ranks=0), attempt, second], token="attempts")
    b, a = run_states(store, 10)
    assert (b.run, b.state, b.attempt, b.launches, b.ranks) == ("b", "started", "", 0, 0)
    assert (a.state, a.reason, a.exit_code, a.command, a.attempt, a.attempt_state, a.launches, a.ranks) == (
        "failed", "gave up", 3, "train.py", "a-2", "ended", 2, 4,
    )  # fmt: skip
    assert (a.started_at, a.changed_at) == (T0, at(50))
    assert run_states(store, 1, "a") == [a] and run_states(store, 10, "c") == []


def test_a_run_has_as_many_ranks_as_were_seen_to_start_on_all_nodes_of_its_newest_attempt(store: Store) -> None:
    """Without StepMonitor or torchrun the launcher that speaks for it saw one; a restart went on with fewer nodes."""
    common = {"old_state": "", "reason": "", "actor": "l", "run": "r", "node": "a"}
    store.insert([RunTransition(**common, new_state="started", at=at(0))], token="r")
    attempts = [AttemptTransition(**common, new_state="running", at=at(n), attempt=f"r-{n}", launch=n, ranks=1) for n in (1, 2)]
    store.insert(attempts, token="a")

    def started(attempt: str, *ranks: int) -> None:
        told = {"kind": "rank_started", "layer": "framework", "severity": "info", "run": "r", "attempt": attempt, "at": at(3)}
        store.insert([Event(id=f"{attempt}/{rank}", rank=rank, node=f"n{rank}", **told) for rank in ranks], token=attempt)

    started("r-1", 0, 1, 2)
    assert [r.ranks for r in run_states(store, 10)] == [1], "those of an earlier attempt say nothing of this one"
    started("r-2", 0)
    started("r-2.1", 1)
    assert [r.ranks for r in run_states(store, 10)] == [r.ranks for r in run_states(store, 1, "r")] == [2]
    assert run_world(store, "r") == 3, "the ledger counts the most that there ever were"


def test_open_incidents_come_first_and_the_worst_of_them_on_top(store: Store) -> None:
    def one(name: str, severity: str, state: str, seconds: float) -> IncidentTransition:
        return IncidentTransition(
            old_state="",
            new_state=state,
            reason="",
            actor="l",
            at=at(seconds),
            incident=name,
            key=name,
            fault="f",
            layer="unknown",
            severity=severity,
            title=name,
        )

    store.insert(
        [
            one("warned", "warning", "open", 50), one("old", "critical", "open", 1), one("old", "critical", "resolved", 2),
            one("burning", "critical", "open", 3),
            one("newer", "info", "resolved", 40),
        ],
        token="i",
    )  # fmt: skip
    assert [(i.incident, i.new_state) for i in incident_states(store, 10)] == [
        ("burning", "open"), ("warned", "open"), ("newer", "resolved"), ("old", "resolved"),
    ]  # fmt: skip
    assert len(incident_states(store, 2)) == 2


def test_an_intent_is_one_request_however_often_it_was_written(store: Store) -> None:
    asked = Request(intent="x", at=T0, kind="approve", target="a", actor="console")
    store.insert([asked, replace(asked, at=at(1)), replace(asked, intent="y", target="b")], token="r")
    assert requests_about(store, ["a"]) == [asked]
    assert requests_about(store, []) == []


def test_ranks_are_their_last_word_longest_without_progress_first(store: Store) -> None:
    word = Live(run="r", attempt="r-1", node="n", rank=0, at=at(5), pid=1, since=at(4))
    store.insert(
        [word, replace(word, at=at(6), since=at(6)), replace(word, rank=1, since=at(1)), replace(word, attempt="r-2", rank=2)], token="l"
    )
    assert [(r.rank, r.at) for r in run_ranks(store, "r", "r-1")] == [(1, at(5)), (0, at(6))]
    store.insert([replace(word, attempt="r-1.1", at=at(8), since=at(7)), replace(word, attempt="r-10", at=at(9))], token="inner")
    assert [(r.rank, r.attempt, r.at) for r in run_ranks(store, "r", "r-1")] == [(1, "r-1", at(5)), (0, "r-1.1", at(8))]


def test_the_newest_complete_checkpoint_counts(store: Store) -> None:
    done = Event(id="1", at=at(1), kind="checkpoint_completed", layer="storage", severity="info", run="r", code="100")
    store.insert([replace(done, id="2", at=at(9), code="200"), done, replace(done, id="3", at=at(99), kind="phase", code="300")], token="e")
    assert [(c.run, c.step, c.at) for c in run_checkpoints(store, ["r", "none"])] == [("r", "200", at(9))]


def test_the_log_tail_is_the_runs_own_newest_lines(store: Store) -> None:
    def line(n: int, run: str = "r") -> dict[str, object]:
        attributes = {"run": run, "rank": "0", "attempt": "r-1"}
        return {
            "Timestamp": now - timedelta(seconds=60 - n),
            "Body": f"line {n}",
            "ServiceName": "surefoot.run",
            "LogAttributes": attributes,
        }

    now = utcnow()
    store.insert_rows("logs", [line(n) for n in range(5)] + [line(9, run="other")], token="logs")
    assert [(row.text, row.rank) for row in run_log_tail(store, "r", 2)] == [("line 3", "0"), ("line 4", "0")]


def test_signs_are_the_last_of_each_part(store: Store, seed_at: Callable[[datetime], None]) -> None:
    now = utcnow()
    beat = Beat(component="launcher", at=now, node="n1", run="r", state="running")
    store.insert(
        [replace(beat, at=now - timedelta(seconds=5), state="starting"), beat, replace(beat, at=now - timedelta(days=1), node="n2")],
        token="b",
    )
    seed_at(now)
    found = {(s.component, s.node): (s.run, s.state) for s in signs_of_life(store, now - timedelta(hours=1))}
    assert found == {("launcher", "n1"): ("r", "running"), ("agent", "n1"): ("", "")}


@pytest.fixture
def seed_at(store: Store) -> Callable[[datetime], None]:
    def write(now: datetime) -> None:
        store.insert_rows("host_raw", [{"device_id": 1, "ts": now, "node": "n1", "load1": 1.0}], token="h")

    return write
