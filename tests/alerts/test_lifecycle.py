"""The lifecycle of an incident: whatever happens in whatever order, its rows stay in order and what is set once stands."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.detectors.verdict import Verdict
from alerts.incidents.advance import Facts, advance
from alerts.incidents.correlate import first_transition, home, incident_key, refinement
from alerts.incidents.lifecycle import ONCE, TRANSITIONS, IllegalTransition, State, move
from alerts.snapshot import AttemptLook, RunLook
from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.faults import COLLECTIVE_HANG, HOST_DOWN, RANK_CRASH, RANK_STOPPED, TELEMETRY_LOST, Fault
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition

T0 = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


def verdict(
    fault: Fault = RANK_CRASH, attempt: str = "r-1", rank: int | None = 1, node: str = "a", detector: str = "rank_exit", **more: Any
) -> Verdict:
    return Verdict(
        key=f"{detector}|{attempt}|r",
        detector=detector,
        fault=fault,
        run="r",
        attempt=attempt,
        reason="seen",
        onset=T0,
        node=node,
        rank=rank,
        **more,
    )


def incident(fault: Fault = RANK_CRASH, **more: Any) -> IncidentTransition:
    return first_transition(verdict(fault, **more), "i", T0 + timedelta(seconds=1))


def attempt(launch: int, state: str) -> AttemptLook:
    return AttemptLook(run="r", attempt=f"r-{launch}", launch=launch, state=state, starting_at=T0 + timedelta(seconds=launch))


def run(*attempts: AttemptLook, state: str = "started") -> RunLook:
    return RunLook(run="r", node="a", state=state, started_at=T0, changed_at=T0, exit_code=None, reason="", attempts=attempts)


def finding(on: str = "r-1", incident: str = "i") -> FindingTransition:
    return FindingTransition(
        old_state="", new_state="open", reason="seen", actor="rank_exit", at=T0, finding=f"f-{on}", key="k", detector="rank_exit",
        fault="rank_crash", layer="framework", severity="critical", run="r", attempt=on, incident=incident,
    )  # fmt: skip


def restart(state: str, on: str = "r-1") -> ActionTransition:
    return ActionTransition(
        old_state="", new_state=state, reason="", actor="leader", at=T0 + timedelta(seconds=2), action=f"a-{on}", key="k",
        kind=RESTART_RUN.name, mode="auto", term=1, incident="i", run="r", attempt=on, new_attempt="r-2", launch=2,
    )  # fmt: skip


FACTS = st.builds(
    Facts,
    findings=st.lists(st.sampled_from(["r-1", "r-2", "r-3"]), max_size=2, unique=True).map(lambda names: tuple(map(finding, names))),
    cleared=st.sampled_from(["", "moves again"]),
    run=st.none()
    | st.builds(
        lambda states, state: run(*(attempt(n + 1, s) for n, s in enumerate(states)), state=state),
        st.lists(st.sampled_from(["issued", "starting", "running", "stopping", "ended"]), min_size=1, max_size=3),
        st.sampled_from(["started", "finished", "failed", "stopped"]),
    ),
    action=st.none()
    | st.builds(
        restart,
        st.sampled_from(["waiting", "issued", "accepted", "succeeded", "failed", "expired", "cancelled"]),
        st.sampled_from(["r-1", "r-2"]),
    ),
    recovered_at=st.none() | st.just(T0 + timedelta(seconds=9)),
    caught_up_at=st.none() | st.just(T0 + timedelta(seconds=12)),
)


@given(st.lists(st.tuples(FACTS, st.floats(-5, 5)), max_size=12))
def test_any_sequence_of_facts_keeps_rows_in_order_times_fixed_and_comes_to_rest(story: list[tuple[Facts, float]]) -> None:
    last, now = incident(), T0 + timedelta(seconds=2)
    for facts, seconds in story:
        now += timedelta(seconds=seconds)  # clocks go back, too
        for _ in range(8):
            following = advance(last, facts, now)
            if following is None:
                break
            assert State(following.new_state) in TRANSITIONS[State(last.new_state)]
            assert following.old_state == last.new_state
            assert following.at > last.at
            assert (following.incident, following.run, following.attempt) == ("i", "r", "r-1")
            for name in ONCE:
                assert not getattr(last, name) or getattr(following, name) == getattr(last, name), name
            assert (following.new_state == "resolved") == (following.resolved_at is not None)
            last = following
        else:
            raise AssertionError("an incident that does not come to rest")


@given(st.sampled_from(list(State)), st.sampled_from(list(State)))
def test_a_move_that_the_table_does_not_hold_is_refused(old: State, new: State) -> None:
    last = incident()
    for state in {
        State.OPEN: [],
        State.MITIGATING: [State.MITIGATING],
        State.RECOVERING: [State.RECOVERING],
        State.RESOLVED: [State.RESOLVED],
    }.get(old, []):
        last = move(last, state, "", T0 + timedelta(seconds=2), **({"resolved_at": T0} if state is State.RESOLVED else {}))
    if old is State.NEW:
        return
    more = {"resolved_at": T0} if new is State.RESOLVED and old is not State.RESOLVED else {}
    if new in TRANSITIONS[old]:
        assert move(last, new, "", T0, **more).new_state == new
    else:
        with pytest.raises(IllegalTransition):
            move(last, new, "", T0, **more)


def test_what_is_set_once_cannot_change_and_a_resolved_incident_only_catches_up() -> None:
    open_one = incident()
    with pytest.raises(IllegalTransition, match="detected_at"):
        move(open_one, State.OPEN, "", T0, detected_at=T0)
    with pytest.raises(IllegalTransition, match="incident"):
        move(open_one, State.OPEN, "", T0, incident="j")
    with pytest.raises(IllegalTransition, match="its time"):
        move(open_one, State.RESOLVED, "", T0)
    resolved = move(open_one, State.RESOLVED, "", T0 + timedelta(seconds=5), resolved_at=T0 + timedelta(seconds=5))
    assert move(resolved, State.RESOLVED, "", T0, caught_up_at=T0).caught_up_at == T0
    with pytest.raises(IllegalTransition, match="cannot change any more"):
        move(resolved, State.RESOLVED, "", T0, fault="host_down")


def test_an_incident_is_not_resolved_by_a_restart_alone_but_by_the_first_step_after_it() -> None:
    restarted = Facts(findings=(), cleared="", run=run(attempt(1, "ended"), attempt(2, "running")), action=restart("succeeded"))
    last = incident()
    while following := advance(last, restarted, T0 + timedelta(seconds=9)):
        last = following
    assert (last.new_state, last.next_attempt, last.resolved_at) == ("recovering", "r-2", None)


def test_of_a_run_that_is_at_its_end_before_its_steps_are_told_the_restart_and_its_first_step_are_known_all_the_same() -> None:
    """Of a leader that was kept from looking while an attempt began and finished."""
    attempts = (attempt(1, "ended"), attempt(2, "ended"))
    over = Facts(findings=(), cleared="", run=run(*attempts, state="finished"), action=restart("succeeded"))
    last = incident()
    while following := advance(last, over, T0 + timedelta(seconds=30)):
        last = following
    assert (last.new_state, last.reason, last.next_attempt, last.recovered_at) == ("resolved", "the run finished", "r-2", None)
    late = Facts(
        findings=(),
        cleared="",
        run=over.run,
        action=None,
        recovered_at=T0 + timedelta(seconds=12),
        caught_up_at=T0 + timedelta(seconds=14),
    )
    while following := advance(last, late, T0 + timedelta(seconds=32)):
        last = following
    assert (last.recovered_at, last.caught_up_at) == (T0 + timedelta(seconds=12), T0 + timedelta(seconds=14))
    assert (last.new_state, last.resolved_at) == ("resolved", T0 + timedelta(seconds=30))


def test_a_verdict_about_the_same_attempt_or_the_one_that_was_to_replace_it_joins_the_open_incident() -> None:
    open_one = incident()
    assert home(verdict(COLLECTIVE_HANG, rank=0), [open_one]) is open_one
    assert home(verdict(attempt="r-2", rank=0), [open_one]) is None
    waiting = move(open_one, State.RECOVERING, "", T0, next_attempt="r-2")
    assert home(verdict(attempt="r-2", rank=0), [waiting]) is waiting
    recovered = move(waiting, State.RECOVERING, "", T0, recovered_at=T0)
    assert home(verdict(attempt="r-2", rank=0), [recovered]) is None, "it had recovered: this is another one"
    assert home(verdict(TELEMETRY_LOST, rank=None), [open_one]) is None
    resolved = move(open_one, State.RESOLVED, "", T0, resolved_at=T0)
    assert home(verdict(), [resolved]) is None


def test_lost_telemetry_becomes_the_host_and_keeps_its_id() -> None:
    lost = incident(TELEMETRY_LOST, rank=None, detector="heartbeat_lost")
    down = verdict(HOST_DOWN, rank=None, detector="heartbeat_lost")
    assert home(down, [lost]) is lost
    changes = refinement(lost, down, T0)
    assert (changes["fault"], changes["severity"], changes["key"]) == ("host_down", "critical", "host_down|a|r")
    assert home(verdict(HOST_DOWN, rank=None, node="b"), [lost]) is None


def test_a_place_found_later_is_put_in_and_a_worse_guess_is_not() -> None:
    vague = first_transition(verdict(COLLECTIVE_HANG, rank=None, node="", detector="step_stall", confidence=0.5), "i", T0)
    assert vague.located_at is None
    named = verdict(RANK_STOPPED, rank=1, detector="step_stall", confidence=1.0)
    later = T0 + timedelta(seconds=1)
    changes = refinement(vague, named, later)
    assert (changes["rank"], changes["fault"], changes["located_at"]) == (1, "rank_stopped", later)
    sure = first_transition(named, "i", T0)
    assert not refinement(sure, verdict(COLLECTIVE_HANG, rank=0, detector="step_stall", confidence=0.8), later)
    acted = move(vague, State.MITIGATING, "", T0)
    killed_by_us = verdict(RANK_CRASH, rank=0, detector="step_stall", confidence=0.9)
    assert not refinement(acted, killed_by_us, later), "once ranks are stopped by us, one that is gone says nothing"


def test_a_key_holds_cause_entity_and_run_and_nothing_measured() -> None:
    assert incident_key(RANK_CRASH, "a", 1, "r") == "rank_crash|a/rank 1|r"
    assert incident().key == first_transition(verdict(confidence=0.3), "j", T0 + timedelta(hours=1)).key
