"""Detectors and localisation over snapshots made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.detectors import heartbeat_lost, node_left, rank_exit, step_stall
from alerts.detectors.stall_limit import limit
from alerts.diagnosis.localise import localise
from alerts.recovery.actuators import lost_runs
from alerts.snapshot import AttemptLook, LauncherLook, Pace, RankExit, RankLook, RunLook, Snapshot
from pipeline.catalog.actions import RESTART_RUN
from pipeline.records import FindingTransition
from pipeline.settings import DetectSettings, Settings

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
PACE = Pace(steps=500, median=0.2, p99=0.3, longest=0.9)
DETECT = Settings().detect


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def attempt(launch: int = 1, state: str = "running", **more: Any) -> AttemptLook:
    began = {"starting_at": ago(100), "running_at": ago(99)}
    return AttemptLook(run="r", attempt=f"r-{launch}", launch=launch, state=state, node="a", ranks=2, **{**began, **more})


def run(*attempts: AttemptLook, state: str = "started") -> RunLook:
    return RunLook(
        run="r",
        node="a",
        state=state,
        started_at=ago(100),
        changed_at=ago(100),
        exit_code=None,
        reason="",
        attempts=attempts or (attempt(),),
    )


def rank(number: int, still: float, phase: str = "forward", **more: Any) -> RankLook:
    usual: dict[str, Any] = {
        "run": "r",
        "attempt": "r-1",
        "node": "a",
        "rank": number,
        "step": 61,
        "completed": 60,
        "phase": phase,
        "collective": "",
        "process_state": "S",
        "at": ago(0.2),
        "still": still,
        "still_at_look": max(0.0, still - 0.2),
        "seen_age": 0.2,
        "state_age": 50.0,
    }
    return RankLook(**{**usual, **more})


def seen(*ranks: RankLook, runs: Sequence[RunLook] = (), **more: Any) -> Snapshot:
    usual: dict[str, Any] = {"now": NOW, "detect": DETECT, "runs": tuple(runs) or (run(),), "ranks": ranks, "pace": {"r": PACE}}
    return Snapshot(**{**usual, **more})


def gone(number: int, code: str, seconds: float = 1.0, launch: int = 1, **more: str) -> RankExit:
    return RankExit(run="r", attempt=f"r-{launch}", node="a", rank=number, at=ago(seconds), code=code, **more)


# --- rank_exit ---------------------------------------------------------------------------------


def test_a_rank_killed_by_a_signal_is_a_crash_of_that_rank_from_that_moment() -> None:
    (verdict,) = rank_exit.detect(seen(rank(0, 1), exits=(gone(1, "-9", 1.5, signal="SIGKILL"),)), NOW)
    assert (verdict.fault.name, verdict.rank, verdict.node, verdict.onset) == ("rank_crash", 1, "a", ago(1.5))
    assert verdict.reason == "rank 1 was killed by SIGKILL"


def test_the_first_failure_is_the_origin_and_what_torchrun_stops_afterwards_is_not_blamed() -> None:
    exits = (gone(0, "-15", 0.5, stopped_by="torchrun"), gone(1, "1", 3.0), gone(2, "-15", 0.4))
    (verdict,) = rank_exit.detect(seen(rank(0, 1), exits=exits), NOW)
    assert verdict.rank == 1


@pytest.mark.parametrize(
    ("together", "origin"),
    [
        ((gone(0, "1", 1.0), gone(1, "-9", 0.8)), 1),  # a peer's connection broke a moment before the kill was noticed
        ((gone(0, "-6", 1.0), gone(1, "1", 0.9)), 1),  # the watchdog of one aborts on the error of another
        ((gone(0, "-15", 1.0), gone(1, "-11", 0.5)), 1),
        ((gone(0, "1", 5.0), gone(1, "-9", 0.8)), 0),  # seconds apart the first one is the origin, whatever it was
        ((gone(0, "-15", 1.0),), 0),  # somebody sent it a SIGTERM: nothing else explains it
    ],
)
def test_among_exits_that_come_together_the_one_that_no_peer_can_cause_is_the_origin(together: tuple[RankExit, ...], origin: int) -> None:
    assert rank_exit.detect(seen(rank(0, 1), exits=together), NOW)[0].rank == origin


def test_ranks_that_the_launcher_stops_on_request_are_no_finding() -> None:
    asked = attempt(state="stopping", stopping_at=ago(2))
    exits = (gone(0, "-15", 1.0), gone(1, "-9", 1.0, stopped_by="launcher"))
    assert not rank_exit.detect(seen(rank(0, 1), runs=[run(asked)], exits=exits), NOW)
    ended = replace(asked, state="ended", ended_at=ago(0.5), exit_code=-15)
    assert not rank_exit.detect(seen(rank(0, 1), runs=[run(ended)], exits=exits), NOW)


def test_a_clean_end_is_no_finding() -> None:
    ended = attempt(state="ended", ended_at=ago(1), exit_code=0)
    assert not rank_exit.detect(seen(rank(0, 1), runs=[run(ended, state="finished")], exits=(gone(0, "0"), gone(1, ""))), NOW)


def test_an_exit_without_status_is_a_crash_in_the_middle_of_a_step_and_none_between_steps() -> None:
    exits = (gone(1, "", 1.0),)
    in_step = rank(1, 1.0, process_state="X", at=ago(0.5))
    assert rank_exit.detect(seen(rank(0, 0.1), in_step, exits=exits), NOW)[0].confidence == 0.8
    between = rank(1, 1.0, phase="", step=60, process_state="X", at=ago(0.5))
    assert not rank_exit.detect(seen(rank(0, 0.1), between, exits=exits), NOW)
    looked_before = rank(1, 1.0, at=ago(1.2))
    assert not rank_exit.detect(seen(rank(0, 0.1), looked_before, exits=exits), NOW), "it may have finished its step since"


def test_an_attempt_that_the_leader_closed_because_its_first_node_was_gone_did_not_fail_by_itself() -> None:
    closed = attempt(state="ended", ended_at=ago(1), exit_code=None, reason="a, which speaks for it, is gone")
    assert not rank_exit.detect(seen(rank(0, 1), runs=[run(closed)]), NOW)
    assert rank_exit.detect(seen(rank(0, 1), runs=[run(replace(closed, exit_code=9))]), NOW), "a command that failed did"


def test_a_failure_before_the_first_step_is_a_start_up_failure() -> None:
    ended = attempt(state="ended", ended_at=ago(1), exit_code=1, reason="no such file")
    (verdict,) = rank_exit.detect(seen(runs=[run(ended)]), NOW)
    assert (verdict.fault.name, verdict.rank, verdict.confidence) == ("startup_failure", None, 0.5)
    young = rank(1, 1, step=1, completed=None)
    assert rank_exit.detect(seen(young, exits=(gone(1, "1"),)), NOW)[0].fault.name == "startup_failure"
    assert rank_exit.detect(seen(exits=(gone(1, "1"),), stepped_attempts=frozenset({"r-1"})), NOW)[0].fault.name == "rank_crash"


def test_a_command_that_tells_no_steps_and_ran_for_long_did_not_fail_at_its_start() -> None:
    ended = attempt(state="ended", starting_at=ago(3600), running_at=ago(3600), ended_at=ago(1), exit_code=1)
    assert rank_exit.detect(seen(runs=[run(ended)]), NOW)[0].fault.name == "rank_crash"


def test_a_failure_is_over_when_another_attempt_was_started_and_not_before() -> None:
    ended = attempt(state="ended", ended_at=ago(5), exit_code=1)
    (verdict,) = rank_exit.detect(seen(runs=[run(ended)]), NOW)
    finding = opened(verdict)
    assert rank_exit.clears(finding, seen(runs=[run(ended)]), NOW) is None
    assert rank_exit.clears(finding, seen(runs=[run(ended, attempt(2, "issued"))]), NOW) is None
    assert rank_exit.clears(finding, seen(runs=[run(ended, attempt(2, "starting"))]), NOW) == "attempt r-2 took its place"
    assert rank_exit.clears(finding, seen(runs=[run(ended, state="failed")]), NOW) is None, "a run that is dead is not well"


# --- step_stall --------------------------------------------------------------------------------


def test_a_rank_stopped_by_a_signal_is_found_after_the_floor_whatever_phase_the_others_are_in() -> None:
    looks = [rank(0, 3.2, "checkpoint"), rank(1, 3.4, process_state="T", state_age=2.0)]
    (verdict,) = step_stall.detect(seen(*looks), NOW)
    assert (verdict.fault.name, verdict.rank, verdict.onset, verdict.confidence) == ("rank_stopped", 1, ago(3.2), 1.0)
    assert not step_stall.detect(seen(rank(0, 2.9), rank(1, 3.4, process_state="T", state_age=2.0)), NOW), "the floor is 3 s"
    assert not step_stall.detect(seen(rank(0, 3.1, "checkpoint"), rank(1, 3.4, process_state="T", state_age=0.3)), NOW), "one look"


def test_a_stall_needs_every_rank_to_stand_still() -> None:
    assert not step_stall.detect(seen(rank(0, 100.0), rank(1, 0.1)), NOW)
    (verdict,) = step_stall.detect(seen(rank(0, 5.0, "comm_wait"), rank(1, 5.1, "forward")), NOW)
    assert (verdict.fault.name, verdict.rank, verdict.onset) == ("collective_hang", 1, ago(5.0))


def test_late_telemetry_is_no_stall_and_no_telemetry_is_none_either() -> None:
    late = [rank(n, 5.0, still_at_look=0.1, at=ago(2.4), seen_age=2.4) for n in (0, 1)]
    assert not step_stall.detect(seen(*late), NOW)
    deaf = [rank(n, 50.0, seen_age=30.0) for n in (0, 1)]
    assert not step_stall.detect(seen(*deaf), NOW)


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [("checkpoint", 1700.0), ("eval", 3500.0), ("compile", 3500.0), ("load_checkpoint", 1700.0), ("init", 590.0), ("data", 55.0)],
)
def test_a_healthy_run_in_a_long_phase_raises_nothing_while_the_others_wait_for_it(phase: str, seconds: float) -> None:
    assert not step_stall.detect(seen(rank(0, seconds, phase), rank(1, seconds, "comm_wait")), NOW)
    assert step_stall.detect(seen(rank(0, 3 * seconds, phase), rank(1, 3 * seconds, "comm_wait")), NOW)


def test_what_a_trainer_does_between_its_steps_may_take_a_while_though_it_has_no_phase() -> None:
    def between(number: int, still: float) -> Any:
        return replace(rank(number, still, ""), step=10, completed=10)

    assert not step_stall.detect(seen(between(0, 500.0), between(1, 501.0)), NOW)
    assert step_stall.detect(seen(between(0, 601.0), between(1, 602.0)), NOW)


def test_a_phase_that_took_longer_before_may_take_longer_again() -> None:
    slow = replace(PACE, phases={"checkpoint": 1000.0})
    assert limit(DETECT, slow, ["checkpoint"], stepped=True).seconds == 3000
    assert limit(DETECT, PACE, ["checkpoint"], stepped=True).seconds == 1800
    assert limit(DETECT, PACE, ["rollout"], stepped=True).seconds == 600, "a long phase without a limit of its own has the start's"


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (PACE, 3.0),  # 8 x 0.2 = 1.6 and 2 x 0.3 = 0.6 are under the floor
        (Pace(steps=100, median=2.0, p99=2.5, longest=60.0), 16.0),  # 8 x 2
        (Pace(steps=100, median=1.0, p99=9.0, longest=60.0), 18.0),  # 2 x 9
        (Pace(steps=4, median=0.2, p99=0.2, longest=0.2), 60.0),  # not calibrated: 20 floors
        (Pace(steps=1, median=None, p99=None, longest=30.0), 240.0),  # 8 x the only step so far
        (None, 60.0),
    ],
)
def test_the_limit_comes_from_the_runs_own_step_times(pace: Pace | None, expected: float) -> None:
    assert limit(DETECT, pace, ["forward", ""], stepped=True).seconds == pytest.approx(expected)
    assert limit(DETECT, pace, ["forward"], stepped=False).seconds == DETECT.start_limit


def test_a_dead_attempts_open_phase_means_nothing() -> None:
    killed = attempt(1, "ended", ended_at=ago(500), stopping_at=ago(501), exit_code=-9)
    old = rank(0, 90_000.0, "checkpoint", seen_age=500.0)
    fresh = [rank(n, 0.1, attempt="r-2") for n in (0, 1)]
    assert not step_stall.detect(seen(old, *fresh, runs=[run(killed, attempt(2))]), NOW)
    hung = [rank(n, 4.0, "backward", attempt="r-2") for n in (0, 1)]
    (verdict,) = step_stall.detect(seen(old, *hung, runs=[run(killed, attempt(2))]), NOW)
    assert verdict.attempt == "r-2", "and the dead attempt's checkpoint does not lend the living one its patience"


def test_ranks_that_wait_for_a_dead_one_are_no_second_finding() -> None:
    assert not step_stall.detect(seen(rank(0, 10.0, "comm_wait"), exits=(gone(1, "-9", 10.0),)), NOW)
    assert not step_stall.detect(seen(rank(0, 10.0), runs=[run(attempt(state="stopping", stopping_at=ago(9)))]), NOW)


def test_a_stall_is_over_when_a_rank_moves_and_not_when_telemetry_stops() -> None:
    finding = opened(step_stall.detect(seen(rank(0, 5.0), rank(1, 5.0)), NOW)[0])
    later = NOW + timedelta(seconds=10)
    still = seen(rank(0, 15.0), rank(1, 15.0), now=later)
    assert step_stall.clears(finding, still, later) is None
    silent = seen(rank(0, 1.0, seen_age=9.0), rank(1, 1.0, seen_age=9.0), now=later)
    assert step_stall.clears(finding, silent, later) is None
    assert step_stall.clears(finding, seen(rank(0, 15.0), rank(1, 1.0), now=later), later) == "rank 1 moves again"


# --- localise ----------------------------------------------------------------------------------


def test_the_rank_that_is_late_is_blamed_and_not_the_ones_that_wait() -> None:
    found = localise(
        [rank(0, 60, "comm_wait"), rank(1, 61, "data"), rank(2, 60, "backward"), rank(3, 60, "forward", collective="all_reduce")]
    )
    assert (found.rank, found.node, found.fault.name) == (1, "a", "collective_hang")
    assert found.reason == "rank 1: it is in data while the others wait for it"


def test_a_rank_that_is_steps_behind_is_blamed_before_its_phase_is_looked_at() -> None:
    found = localise([rank(0, 60, "comm_wait"), rank(1, 60, "comm_wait", step=60, completed=59), rank(2, 60, "forward")])
    assert (found.rank, found.confidence) == (1, 0.9)


def test_where_all_ranks_look_alike_none_is_named_and_the_confidence_says_so() -> None:
    found = localise([rank(n, 60, "backward", node=f"n{n % 2}") for n in range(4)])
    assert (found.rank, found.node, found.ranks, found.confidence) == (None, "", (0, 1, 2, 3), 0.25)
    assert found.reason == "one of 4 ranks (0, 1, 2, 3): all ranks look alike"


def test_two_suspects_share_the_blame() -> None:
    found = localise([rank(0, 60, "comm_wait"), rank(1, 60, "data"), rank(2, 60, "data"), rank(3, 60, "comm_wait")])
    assert (found.rank, found.ranks, found.confidence) == (None, (1, 2), 0.4)


def test_a_stopped_process_outranks_every_other_sign_and_a_passing_look_at_it_counts_for_nothing() -> None:
    looks = [rank(0, 60, "data"), rank(1, 60, "backward", process_state="T", state_age=5.0)]
    assert (localise(looks).rank, localise(looks).fault.name) == (1, "rank_stopped")
    assert localise([looks[0], replace(looks[1], state_age=0.2)]).rank == 0


def test_a_process_that_is_gone_in_the_middle_of_its_work_is_the_crash() -> None:
    found = localise([rank(0, 60, "comm_wait"), rank(1, 60, "forward", process_state="X", seen_age=60.0)])
    assert (found.rank, found.fault.name) == (1, "rank_crash")


# --- heartbeat_lost ----------------------------------------------------------------------------


def launcher(age: float, node: str = "a") -> LauncherLook:
    return LauncherLook(run="r", node=node, attempt="r-1", state="running", launch=1, ranks="", at=ago(age), age=age)


def test_an_agents_silence_alone_is_lost_telemetry_on_its_node_and_asks_for_no_action() -> None:
    silent = seen(rank(0, 0.1, seen_age=13.0), launchers=(launcher(0.5),), agents={"a": 20.0}, ingest_steady=60.0)
    (verdict,) = heartbeat_lost.detect(silent, NOW)
    assert (verdict.fault.name, verdict.node, verdict.rank, verdict.onset) == ("telemetry_lost", "a", None, ago(13))
    assert verdict.fault.first_action is None
    assert not step_stall.detect(silent, NOW)


def test_a_silence_of_agent_and_launcher_is_a_host_that_may_be_down() -> None:
    silent = seen(rank(0, 0.1, seen_age=13.0), launchers=(launcher(12.5),), agents={"a": 20.0}, ingest_steady=60.0)
    (verdict,) = heartbeat_lost.detect(silent, NOW)
    assert (verdict.fault.name, verdict.onset) == ("host_down", ago(12.5))


@pytest.mark.parametrize("steady", [None, 3.0])
def test_nobody_is_called_silent_while_ingest_was_deaf(steady: float | None) -> None:
    assert not heartbeat_lost.detect(seen(rank(0, 0.1, seen_age=50.0), launchers=(launcher(50.0),), ingest_steady=steady), NOW)


def test_a_run_that_ended_and_an_agent_never_heard_are_no_finding() -> None:
    over = run(attempt(state="ended", ended_at=ago(60), exit_code=0), state="finished")
    assert not heartbeat_lost.detect(seen(rank(0, 60, seen_age=60.0), runs=[over], launchers=(launcher(60.0),), ingest_steady=60.0), NOW)
    assert not heartbeat_lost.detect(seen(launchers=(launcher(0.5),), ingest_steady=60.0), NOW)


def test_ranks_that_have_closed_their_rings_are_not_missed_while_the_agent_sends_its_readings() -> None:
    closed = seen(rank(0, 60, seen_age=60.0), launchers=(launcher(0.5),), agents={"a": 11.0}, ingest_steady=60.0)
    assert not heartbeat_lost.detect(closed, NOW), "readings come every 10 s"


def test_lost_telemetry_is_over_only_when_the_agent_is_heard_again() -> None:
    silent = seen(rank(0, 0.1, seen_age=13.0), launchers=(launcher(0.5),), ingest_steady=60.0)
    finding = opened(heartbeat_lost.detect(silent, NOW)[0])
    assert heartbeat_lost.clears(finding, seen(launchers=(launcher(0.5),)), NOW) is None, "nothing known is not well"
    assert heartbeat_lost.clears(finding, seen(rank(0, 0.1), launchers=(launcher(0.5),)), NOW) == "the agent is heard again"


def alone(*more: Any, age: float = 11.0, **changes: Any) -> Snapshot:
    """A launcher that has been silent for `age` seconds under an agent that spoke just now."""
    return seen(rank(0, 0.1), *more, **{"launchers": (launcher(age),), "agents": {"a": 3.0}, "ingest_steady": 60.0, **changes})


def test_a_launcher_that_is_silent_while_its_nodes_agent_speaks_is_lost_and_nothing_is_restarted_for_it() -> None:
    (verdict,) = heartbeat_lost.detect(alone(), NOW)
    assert (verdict.fault.name, verdict.node, verdict.rank, verdict.attempt, verdict.onset) == ("launcher_lost", "a", None, "r-1", ago(11))
    assert (verdict.fault.severity, verdict.fault.first_action) == ("critical", None)
    assert verdict.reason == "the launcher on a has been silent for 11 s while the node's agent speaks"
    assert not heartbeat_lost.detect(alone(age=9.0), NOW)


def test_a_launcher_of_which_nothing_is_heard_for_a_quarter_of_an_hour_is_lost_where_no_agent_is_there() -> None:
    unwatched = seen(launchers=(launcher(890.0),), runs=[replace(run(), changed_at=ago(5000))], ingest_steady=5000.0)
    assert not heartbeat_lost.detect(unwatched, NOW)
    (verdict,) = heartbeat_lost.detect(replace(unwatched, launchers=(launcher(905.0),)), NOW)
    assert verdict.reason == "the launcher on a has been silent for 905 s and no agent is heard there"


def test_a_launcher_that_died_between_two_attempts_is_lost_too() -> None:
    waiting = run(attempt(state="ended", ended_at=ago(60), exit_code=1))
    (verdict,) = heartbeat_lost.detect(seen(runs=[waiting], launchers=(launcher(50.0),), agents={"a": 3.0}, ingest_steady=60.0), NOW)
    assert verdict.fault.name == "launcher_lost"


TWO = {"nodes": ("a", "b"), "issued_at": ago(100)}


def of_two(*launchers: LauncherLook, **changes: Any) -> Snapshot:
    """An attempt of the nodes a and b, under agents that speak."""
    usual = {"runs": [run(attempt(**TWO))], "launchers": launchers, "agents": {"a": 1.0, "b": 1.0}, "ingest_steady": 60.0}
    return seen(rank(0, 0.1), rank(1, 0.1, node="b"), **{**usual, **changes})


def test_one_of_several_whose_launcher_ended_has_left_its_run_which_begins_anew() -> None:
    gone = replace(launcher(3.0, "b"), state="gone")
    (verdict,) = node_left.detect(of_two(launcher(0.3), gone), NOW)
    assert (verdict.fault.name, verdict.node, verdict.rank, verdict.attempt, verdict.onset) == ("node_left", "b", None, "r-1", ago(3))
    assert verdict.fault.first_action is RESTART_RUN
    assert verdict.reason == "b has left attempt r-1: its launcher ended"
    assert not node_left.detect(of_two(launcher(0.3), replace(gone, age=1.0)), NOW), "the whole job may be ending"
    stopping = [run(attempt(state="stopping", stopping_at=ago(2), **TWO))]
    assert not node_left.detect(of_two(launcher(0.3), gone, runs=stopping), NOW), "it is"


def test_one_of_several_that_was_started_anew_has_left_its_attempt_at_once() -> None:
    anew = replace(launcher(0.3, "b"), state="starting", attempt="", waited=4.0)
    (verdict,) = node_left.detect(of_two(launcher(0.3), anew), NOW)
    assert (verdict.fault.name, verdict.node, verdict.onset) == ("node_left", "b", ago(4.3))
    assert verdict.reason == "b has left attempt r-1: its launcher was started anew"
    assert not node_left.detect(of_two(launcher(0.3), replace(anew, waited=99.0)), NOW), (
        "it asked when the attempt was issued: it is taking it up"
    )
    both = [replace(anew, node=node) for node in "ab"]
    assert not node_left.detect(of_two(*both), NOW), "nobody is left to carry the attempt: they are given a new one"


def test_one_of_several_whose_launcher_is_silent_has_left_once_its_ranks_are_gone_too() -> None:
    silent = launcher(12.0, "b")
    assert not node_left.detect(of_two(launcher(0.3), silent), NOW), "its ranks work"
    (verdict,) = heartbeat_lost.detect(of_two(launcher(0.3), silent), NOW)
    assert verdict.fault.name == "launcher_lost"
    dead = replace(of_two(launcher(0.3), silent), ranks=(rank(0, 0.1), rank(1, 0.1, node="b", process_state="Z")))
    (verdict,) = node_left.detect(dead, NOW)
    assert verdict.reason == "b has left attempt r-1: its launcher is gone and so are its ranks"


def test_one_whose_ranks_nobody_sees_has_left_once_its_launcher_is_silent_for_two_heartbeats() -> None:
    unseen = replace(of_two(launcher(0.3), launcher(19.0, "b")), ranks=())
    assert not node_left.detect(unseen, NOW)
    (verdict,) = node_left.detect(replace(unseen, launchers=(launcher(0.3), launcher(20.5, "b"))), NOW)
    assert (verdict.node, verdict.confidence, verdict.onset) == ("b", 0.8, ago(20.5))
    assert verdict.reason == "b has left attempt r-1: its launcher has been silent for 20 s, and nothing is seen of its ranks"
    seen_at_work = of_two(launcher(0.3), launcher(40.0, "b"))
    assert not node_left.detect(seen_at_work, NOW), "its ranks are seen to work"


@pytest.mark.parametrize(("state", "ranks"), [("done", ""), ("finishing", ""), ("gone", "well")])
def test_one_whose_command_ended_well_has_not_left_and_is_not_missed(state: str, ranks: str) -> None:
    well = replace(launcher(70.0, "b"), state=state, ranks=ranks)
    at_rest = of_two(launcher(0.3), well)
    assert not node_left.detect(at_rest, NOW)
    assert not heartbeat_lost.detect(at_rest, NOW)
    down = replace(at_rest, ranks=(rank(0, 0.1),), agents={"a": 1.0, "b": 70.0})
    assert not heartbeat_lost.detect(down, NOW), "nor is its host"
    assert not node_left.detect(down, NOW)
    before = of_two(launcher(0.3), replace(well, attempt="r-0"))
    assert heartbeat_lost.detect(before, NOW) or node_left.detect(before, NOW), "it ended well in another attempt"


def test_one_whose_command_ended_well_may_be_started_anew_and_the_run_ends_when_all_have() -> None:
    anew, done = replace(launcher(0.3), state="starting", attempt="", waited=4.0), replace(launcher(0.3, "b"), state="done")
    ended = [run(attempt(state="ended", ended_at=ago(30), exit_code=0, **TWO))]
    over = of_two(anew, done, runs=ended)
    assert not node_left.detect(over, NOW)
    assert lost_runs.unspoken(over, over.runs[0]), "the one that speaks for the run knows nothing of it any more"
    at_work = of_two(anew, launcher(0.3, "b"), runs=ended)
    assert not node_left.detect(at_work, NOW) and not lost_runs.unspoken(at_work, at_work.runs[0])
    saying_so = of_two(replace(done, node="a", state="finishing"), done, runs=ended)
    assert not lost_runs.unspoken(saying_so, saying_so.runs[0]), "it is about to tell"
    other = replace(anew, node="b")
    exited = RankExit(run="r", attempt="r-1", node="b", rank=None, at=ago(20), code="0")
    assert not node_left.detect(of_two(launcher(0.3), other, exits=(exited,)), NOW)
    for bad in (replace(exited, code="1"), replace(exited, stopped_by="launcher"), replace(exited, rank=1), replace(exited, node="a")):
        assert node_left.detect(of_two(launcher(0.3), other, exits=(bad,)), NOW)


def test_who_left_is_back_with_the_next_attempt_and_a_launcher_that_began_anew_is_not_the_one_that_was_lost() -> None:
    gone = replace(launcher(3.0, "b"), state="gone")
    left = opened(node_left.detect(of_two(launcher(0.3), gone), NOW)[0])
    lost = opened(heartbeat_lost.detect(of_two(launcher(0.3), launcher(12.0, "b")), NOW)[0])
    anew = of_two(launcher(0.3), replace(launcher(0.3, "b"), state="starting", attempt=""))
    assert node_left.clears(left, anew, NOW) is heartbeat_lost.clears(lost, anew, NOW) is None
    assert heartbeat_lost.clears(lost, of_two(launcher(0.3), launcher(0.3, "b")), NOW) == "the launcher is heard again"
    second = [run(attempt(**TWO), attempt(2, **TWO))]
    for finding, detector in ((left, node_left), (lost, heartbeat_lost)):
        assert detector.clears(finding, replace(anew, runs=tuple(second)), NOW) is not None
    assert node_left.clears(left, replace(anew, runs=tuple(second)), NOW) == "attempt r-2 took its place"


def test_a_host_that_takes_agent_and_launcher_at_once_is_not_called_a_lost_launcher_first() -> None:
    for seconds in (5.0, 10.5, 11.5):
        down = seen(rank(0, 0.1, seen_age=seconds), launchers=(launcher(seconds + 1),), agents={"a": seconds + 4}, ingest_steady=60.0)
        assert not heartbeat_lost.detect(down, NOW)


@pytest.mark.parametrize("steady", [None, 3.0])
def test_a_launcher_is_not_called_lost_where_ingest_was_away(steady: float | None) -> None:
    assert not heartbeat_lost.detect(alone(age=300.0, ingest_steady=steady), NOW)


def test_a_run_that_ended_is_abandoned_or_has_just_begun_again_has_no_lost_launcher() -> None:
    ended = attempt(state="ended", ended_at=ago(60), exit_code=0)
    assert not heartbeat_lost.detect(alone(age=60.0, runs=[run(ended, state="finished")]), NOW)
    assert not heartbeat_lost.detect(alone(age=60.0, runs=[replace(run(ended), abandoned=True)]), NOW)
    assert not heartbeat_lost.detect(alone(age=600.0, runs=[replace(run(ended), changed_at=ago(2))]), NOW), "its last beat is of before"
    assert not heartbeat_lost.detect(alone(age=600.0, runs=[replace(run(ended), node="b")]), NOW), "it goes on elsewhere"


def test_a_lost_launcher_is_over_when_it_speaks_or_somebody_took_its_place_and_not_when_the_leader_ends_its_run() -> None:
    finding = opened(heartbeat_lost.detect(alone(), NOW)[0])
    assert heartbeat_lost.clears(finding, alone(age=20.0), NOW) is None
    assert heartbeat_lost.clears(finding, alone(age=0.4), NOW) == "the launcher is heard again"
    again = run(attempt(), attempt(2))
    assert heartbeat_lost.clears(finding, alone(age=20.0, runs=[again]), NOW) == "attempt r-2 took its place"
    failed = run(state="failed")
    assert heartbeat_lost.clears(finding, alone(age=20.0, runs=[failed]), NOW) == "its launcher told the run's end"
    ours = replace(failed, reason=heartbeat_lost.RANKS_GONE)
    assert heartbeat_lost.clears(finding, alone(age=20.0, runs=[ours]), NOW) is None, "somebody has to know"


def opened(verdict: Any) -> FindingTransition:
    """The finding that the leader would open now."""
    return FindingTransition(
        old_state="",
        new_state="open",
        reason=verdict.reason,
        actor=verdict.detector,
        at=NOW,
        finding="f",
        key=verdict.key,
        detector=verdict.detector,
        fault=verdict.fault.name,
        layer=verdict.fault.layer,
        severity=verdict.fault.severity,
        run=verdict.run,
        attempt=verdict.attempt,
        node=verdict.node,
        rank=verdict.rank,
        onset=verdict.onset,
    )


def test_the_shipped_patience_is_what_these_tests_assume() -> None:
    assert isinstance(DETECT, DetectSettings)
    assert (DETECT.stall_floor, DETECT.stall_factor, DETECT.heartbeat) == (3.0, 8.0, 10.0)
