"""Launchers of one run find together: who takes part in an attempt, in what order, and who is named and left out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.recovery.actuators import attempts, gather
from alerts.recovery.actuators.gather import resume, short_of
from alerts.snapshot import AttemptLook, LauncherLook, RunLook, Snapshot
from pipeline.records import ActionTransition, AttemptTransition, Transition
from pipeline.settings import DetectSettings

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = 30.0
RESTART = ActionTransition(
    old_state="issued",
    new_state="accepted",
    reason="rank 1 died",
    actor="launcher:a",
    at=NOW - timedelta(seconds=5),
    action="act",
    key="k",
    kind="restart_run",
    mode="auto",
    term=1,
    run="r",
    attempt="r-1",
    new_attempt="r-2",
    launch=2,
)


def launcher(node: str, state: str = "ready", **more: Any) -> LauncherLook:
    usual = {"run": "r", "attempt": "", "launch": 2, "ranks": "", "at": NOW, "age": 0.3, "nodes": "2", "address": f"ip-{node}"}
    return LauncherLook(**{**usual, "node": node, "state": state, **more})


def asking(node: str, waited: float = 1.0, **more: Any) -> LauncherLook:
    return launcher(node, "starting", **{"launch": 1, "waited": waited, **more})


def attempt(launch: int = 1, state: str = "ended", nodes: tuple[str, ...] = ("a", "b"), **more: Any) -> AttemptLook:
    return AttemptLook(run="r", attempt=f"r-{launch}", launch=launch, state=state, node=nodes[0], nodes=nodes, **more)


def run(*known: AttemptLook, state: str = "started") -> RunLook:
    return RunLook(run="r", node="a", state=state, started_at=NOW, changed_at=NOW, exit_code=None, reason="", attempts=known)


def look(*launchers: LauncherLook, runs: tuple[RunLook, ...] = (), steady: float | None = 600.0) -> Snapshot:
    return Snapshot(now=NOW, detect=DetectSettings(), runs=runs, launchers=launchers, ingest_steady=steady)


def first(snapshot: Snapshot, used: dict[str, AttemptLook] | None = None) -> list[AttemptTransition]:
    return list(gather.first(snapshot, used or {}, PATIENCE, NOW))


def again(snapshot: Snapshot, *down: str, at: datetime = NOW) -> list[Transition]:
    return gather.again(snapshot, RESTART, dict.fromkeys(down, "its host is down"), PATIENCE, at)


# --- the first attempt -------------------------------------------------------------------------


def test_a_run_of_two_nodes_begins_once_both_have_come_and_the_first_by_name_is_master() -> None:
    assert first(look(asking("b"))) == []
    (issued,) = first(look(asking("b", resume="80 /c/80"), asking("a", resume="80 /c/80")))
    assert (issued.attempt, issued.launch, issued.nodes, issued.node, issued.master) == ("r-1", 1, "a,b", "a", "ip-a")
    assert (issued.new_state, issued.resume_from, issued.reason) == ("issued", "/c/80", "the launchers of a, b have come")


def test_of_two_to_three_nodes_two_begin_when_no_third_came_for_a_while_and_three_at_once() -> None:
    two = [asking("a", 29.0, nodes="2:3"), asking("b", 3.0, nodes="2:3")]
    assert first(look(*two)) == []
    (issued,) = first(look(replace(two[0], waited=30.0), two[1]))
    assert issued.nodes == "a,b"
    (issued,) = first(look(*two, asking("c", nodes="2:3")))
    assert issued.nodes == "a,b,c"


def test_more_than_a_run_takes_stay_as_spares_and_the_silent_do_not_count() -> None:
    (issued,) = first(look(asking("c"), asking("b"), asking("a")))
    assert issued.nodes == "a,b"
    assert first(look(asking("a"), asking("b", age=11.0))) == []


def test_no_attempt_id_is_used_twice_whichever_launcher_remembers_and_whatever_was_there_before() -> None:
    both = (asking("a", launch=1), asking("b", launch=4))
    assert first(look(*both))[0].attempt == "r-4"
    assert first(look(*both), used={"r": attempt(6)})[0].attempt == "r-7"
    over = run(attempt(5, nodes=("a", "b")), state="finished")
    assert first(look(*both, runs=(over,)))[0].attempt == "r-6"


@pytest.mark.parametrize(
    "there",
    [
        (attempt(1, "running"), (launcher("a", "running", attempt="r-1"),)),
        (attempt(1, "ended"), (launcher("a", "waiting", attempt="r-1"),)),
        (attempt(1, "ended"), (launcher("a", "ready"),)),
    ],
    ids=["running", "failed and not yet judged", "at the barrier"],
)
def test_launchers_that_come_while_an_attempt_is_somebodys_are_spares(there: tuple[AttemptLook, tuple[LauncherLook, ...]]) -> None:
    current, others = there
    assert first(look(asking("c"), asking("d"), *others, runs=(run(current),))) == []


def test_an_attempt_that_nobody_speaks_for_any_more_is_followed_by_a_new_one() -> None:
    assert first(look(asking("a"), asking("b"), runs=(run(attempt(1, "running")),)))[0].attempt == "r-2"
    stale = attempt(1, "issued", issued_at=NOW - timedelta(seconds=61))
    assert first(look(asking("a", 90.0), asking("b"), runs=(run(stale),)))[0].attempt == "r-2"


@pytest.mark.parametrize("state", ["issued", "starting"])
def test_those_that_an_attempt_was_issued_for_a_moment_ago_are_not_given_a_second_one(state: str) -> None:
    """Their last sign of life still says that they ask; whether the run itself has a row yet does not matter."""
    just = attempt(1, state, issued_at=NOW - timedelta(seconds=2))
    both = (asking("a", 3.0), asking("b", 5.0))
    assert first(look(*both, runs=(run(just),))) == []
    assert first(look(*both), used={"r": just}) == []
    begun_anew = (asking("a", 0.0, at=NOW + timedelta(seconds=3)), asking("b", 0.5, at=NOW + timedelta(seconds=3)))
    assert first(look(*begun_anew), used={"r": just})[0].attempt == "r-2", "these were started after it"


def test_an_attempt_that_launchers_began_by_themselves_is_adopted_with_all_that_carry_it() -> None:
    began = {"state": "running", "attempt": "r-1", "launch": 1, "nodes": "2:3"}
    a, b, c = (launcher(node, waited=waited, **began) for node, waited in (("a", 8.0), ("b", 9.0), ("c", 7.0)))

    def adopted(snapshot: Snapshot, used: dict[str, AttemptLook] | None = None) -> list[AttemptTransition]:
        return list(gather.adopt(snapshot, used or {}, PATIENCE, NOW))

    (row,) = adopted(look(c, b, a))
    assert (row.attempt, row.launch, row.nodes, row.new_state, row.at) == ("r-1", 1, "a,b,c", "issued", NOW - timedelta(seconds=11))
    assert row.reason == "a, b, c began it while nobody answered them"
    assert adopted(look(a, b)) == [], "the third may be about to speak"
    (two,) = adopted(look(replace(a, waited=PATIENCE), b))
    assert two.nodes == "a,b"
    assert adopted(look(a, b, c, steady=5.0)) == [], "not all may have been heard yet"
    assert adopted(look(a, b, c, runs=(run(attempt(1, "issued")),))) == adopted(look(a, b, c), {"r": attempt(1)}) == [], "it is"
    assert adopted(look(*(replace(one, waited=0.0) for one in (a, b, c)))) == [], "these were given it by a leader"


def test_a_launcher_of_several_is_not_answered_as_one_alone() -> None:
    assert list(attempts.due(look(asking("a"), runs=(run(),)), {}, NOW)) == []


# --- the barrier -------------------------------------------------------------------------------


def test_a_restart_waits_until_every_node_of_the_attempt_is_ready_and_keeps_their_order() -> None:
    old = run(attempt(nodes=("b", "a")))
    assert again(look(launcher("b"), launcher("a", "stopping", attempt="r-1"), runs=(old,))) == []
    (issued,) = again(look(launcher("b"), launcher("a"), runs=(old,)))
    assert isinstance(issued, AttemptTransition)
    assert (issued.attempt, issued.launch, issued.nodes, issued.master, issued.action) == ("r-2", 2, "b,a", "ip-b", "act")
    assert issued.reason == "all that go on are ready: b, a"
    assert again(look(launcher("b"), launcher("a"), runs=(run(attempt(), attempt(2, "issued")),))) == [], "it was issued"


def test_who_is_not_ready_in_time_is_named_and_left_out_where_the_run_may_go_on_without() -> None:
    old, ready = run(attempt(nodes=("a", "b", "c"))), [launcher("a", nodes="2:3"), launcher("c", nodes="2:3")]
    late = NOW + timedelta(seconds=26)  # 31 s after the first accepted
    assert again(look(*ready, runs=(old,)), at=NOW + timedelta(seconds=24)) == []
    told, issued = again(look(*ready, runs=(old,)), at=late)
    assert told.reason == "b is left out: its launcher was not ready within 30 s"
    assert isinstance(told, ActionTransition) and told.new_state == "accepted"
    assert isinstance(issued, AttemptTransition) and issued.nodes == "a,c"
    assert again(look(*ready, runs=(old,), steady=20.0), at=late) == [], "ingest was deaf itself until 20 s ago"


def test_a_host_that_is_known_to_be_down_is_not_waited_for_and_a_spare_takes_its_place() -> None:
    old = run(attempt(nodes=("a", "b"), state="running"))
    here = [launcher("b"), asking("s", resume="60 /c/60")]
    ended, issued = again(look(*here, runs=(old,)), "a")[1:]
    told = again(look(*here, runs=(old,)), "a")[0]
    assert told.reason == "a is left out: its host is down; taken in: s"
    assert isinstance(ended, AttemptTransition) and (ended.attempt, ended.new_state, ended.node) == ("r-1", "ended", "a")
    assert ended.reason == "a, which speaks for it, is gone"
    assert isinstance(issued, AttemptTransition) and (issued.nodes, issued.node, issued.master) == ("b,s", "b", "ip-b")


def test_one_whose_launcher_said_that_it_ends_is_not_waited_for() -> None:
    old = run(attempt(nodes=("a", "b", "c"), state="running"))
    here = [launcher("a", nodes="2:3"), launcher("c", nodes="2:3"), launcher("b", "gone", attempt="r-1", nodes="2:3")]
    told, issued = again(look(*here, runs=(old,)))
    assert told.reason == "b is left out: its launcher ended"
    assert isinstance(issued, AttemptTransition) and issued.nodes == "a,c"
    assert short_of(look(*here, runs=(old,)), old, "") == "", "two are left, and two suffice"
    assert "2 are left" in short_of(look(*(replace(one, nodes="3") for one in here), runs=(old,)), old, "")


def test_one_whose_launcher_is_known_to_be_gone_is_not_waited_for_and_takes_part_where_it_is_heard_again() -> None:
    old, here = run(attempt(nodes=("a", "b", "c"))), [launcher("a", nodes="2:3"), launcher("c", nodes="2:3")]
    killed = {"b": "its launcher is gone"}
    told, issued = gather.again(look(*here, runs=(old,)), RESTART, killed, PATIENCE, NOW)
    assert told.reason == "b is left out: its launcher is gone"
    assert isinstance(issued, AttemptTransition) and issued.nodes == "a,c"
    back = look(*here, asking("b", 3.0, nodes="2:3"), runs=(old,))
    (issued,) = gather.again(back, RESTART, killed, PATIENCE, NOW)
    assert isinstance(issued, AttemptTransition) and issued.nodes == "a,b,c"


def test_spares_are_not_given_the_work_of_a_run_that_ended_well_on_every_node() -> None:
    silent = [launcher("a", "finishing", attempt="r-1", age=12.0), launcher("b", "gone", attempt="r-1", ranks="well", age=12.0)]
    over = run(attempt())
    assert first(look(asking("c", 60.0), asking("d", 60.0), *silent, runs=(over,))) == []
    failed = [silent[0], replace(silent[1], ranks="")]
    assert first(look(asking("c", 60.0), asking("d", 60.0), *failed, runs=(over,)))[0].nodes == "c,d"


def test_a_first_node_whose_launcher_began_anew_takes_part_and_the_leader_tells_the_end_that_it_cannot() -> None:
    old = run(attempt(state="running", issued_at=NOW - timedelta(seconds=60)))
    ended, issued = again(look(asking("a", 10.0), launcher("b"), runs=(old,)))
    assert isinstance(ended, AttemptTransition) and (ended.attempt, ended.new_state, ended.reason) == (
        "r-1",
        "ended",
        "a, which speaks for it, is gone",
    )
    assert isinstance(issued, AttemptTransition) and issued.nodes == "a,b"


def test_with_fewer_than_the_run_needs_nothing_is_issued() -> None:
    assert again(look(launcher("b"), runs=(run(attempt()),)), "a", at=NOW + timedelta(seconds=90)) == []


def test_a_run_of_one_node_has_no_barrier() -> None:
    alone = AttemptLook(run="r", attempt="r-1", launch=1, state="ended", node="a")
    assert again(look(launcher("a", nodes=""), runs=(run(alone),))) == []


# --- pieces --------------------------------------------------------------------------------------


def test_all_resume_from_the_newest_checkpoint_that_everybody_sees_who_sees_any() -> None:
    """A network file system shows the newest one to some a moment later; a node without the folder sees none, and joins."""
    here = [launcher("a", resume="100 /c/step 100"), launcher("b", resume="80 /c/step 80"), launcher("c", resume="")]
    assert resume(here) == "/c/step 80"
    assert resume([launcher("a")]) == ""
    assert resume([launcher("a", resume="what is this")]) == ""


def test_a_run_is_short_of_nodes_when_fewer_are_heard_than_it_takes() -> None:
    old = run(attempt())
    here = look(launcher("a", "running"), launcher("b", "running", age=40.0), runs=(old,))
    assert short_of(here, old, "b") == ("the run takes 2 nodes and 1 are left: start a launcher of it on another node, with --run-id r")
    assert short_of(look(*here.launchers, asking("s"), runs=(old,)), old, "b") == ""
    assert "cannot reach it" in short_of(look(launcher("a", "running", nodes=""), runs=(old,)), old, "a")
