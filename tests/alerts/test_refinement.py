"""What puts an incident right comes to rest: verdicts that are seen again and again do not take it from one cause to another and back."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from alerts.detectors.verdict import Verdict
from alerts.incidents.causes import Death, because, explains
from alerts.incidents.correlate import first_transition, refinement
from alerts.incidents.lifecycle import State, move
from pipeline.catalog.faults import (
    BY_NAME,
    COLLECTIVE_HANG,
    HOST_DOWN,
    HOST_OOM_KILL,
    LAUNCHER_LOST,
    NODE_LEFT,
    RANK_CRASH,
    RANK_STOPPED,
    RESTART_LOOP,
    STARTUP_FAILURE,
    TELEMETRY_LOST,
    Fault,
)
from pipeline.records import IncidentTransition

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
DEATHS = (Death("-9", "", ""),)
SURE = {HOST_DOWN: 0.8, NODE_LEFT: 0.95, LAUNCHER_LOST: 0.9, TELEMETRY_LOST: 1.0, HOST_OOM_KILL: 1.0}


def verdict(fault: Fault, node: str, rank: int | None = None, seconds: float = 0.0, detector: str = "", **more: Any) -> Verdict:
    """Of attempt r-1, begun `seconds` after noon, as sure as the detector of `fault` is."""
    usual: dict[str, Any] = {"run": "r", "attempt": "r-1", "reason": "seen", "confidence": SURE.get(fault, 1.0)}
    told = {**usual, "detector": detector or fault.name, **more}
    return Verdict(key=f"{detector}|{fault.name}|{node}", fault=fault, node=node, rank=rank, onset=T0 + timedelta(seconds=seconds), **told)


def look(incident: IncidentTransition, verdicts: list[Verdict], now: datetime) -> IncidentTransition:
    """One look of the leader: each verdict puts right what it can, and then what explains a failure."""
    for one in verdicts:
        if changes := refinement(incident, one, now):
            incident = move(incident, State(incident.new_state), one.reason, now, **changes)
    for one in verdicts:
        if one.fault is HOST_OOM_KILL and explains(one, incident, DEATHS) and (changes := because(incident, one, now)):
            incident = move(incident, State(incident.new_state), one.reason, now, **changes)
    return incident


def about(incident: IncidentTransition) -> tuple[Any, ...]:
    return incident.fault, incident.node, incident.rank, incident.confidence


def test_a_peer_that_dies_of_a_killed_launcher_does_not_take_the_incident_back_from_the_node_that_left() -> None:
    crash = verdict(RANK_CRASH, "b", 1, 0.4, "rank_exit")
    left = verdict(NODE_LEFT, "a", seconds=0.0)
    for first in (crash, left):
        one = first_transition(first, "i", T0 + timedelta(seconds=13))
        seen = []
        for second in range(14, 60):
            one = look(one, [crash, left], T0 + timedelta(seconds=second))
            seen.append(one.at)
        assert about(one) == ("node_left", "a", None, 0.95)
        assert len(set(seen)) == 1, "it was put right once, or not at all"


def test_two_nodes_that_left_at_once_do_not_take_the_incident_from_each_other() -> None:
    both = [verdict(NODE_LEFT, "a"), verdict(NODE_LEFT, "b", seconds=1.0)]
    one = look(first_transition(both[0], "i", T0), both, T0 + timedelta(seconds=3))
    assert about(one) == ("node_left", "a", None, 0.95)


def test_what_a_restart_loop_is_about_is_not_told_as_one_failure_again() -> None:
    loop = first_transition(verdict(RESTART_LOOP, "a", 1, confidence=0.5), "i", T0)
    assert not refinement(loop, verdict(RANK_CRASH, "a", 1, detector="rank_exit"), T0)


def test_a_stall_is_told_as_the_rank_that_ended_before_it_and_stays_that_though_the_stall_was_surer() -> None:
    stall = verdict(RANK_STOPPED, "b", 1, 2.0, "step_stall", confidence=0.9)
    ended = verdict(RANK_CRASH, "a", 0, 1.0, "rank_exit", confidence=0.8)
    one = look(first_transition(stall, "i", T0 + timedelta(seconds=5)), [stall, ended], T0 + timedelta(seconds=6))
    assert (one.fault, one.node, one.rank) == ("rank_crash", "a", 0)
    assert about(look(one, [stall, ended], T0 + timedelta(seconds=7))) == about(one)


nodes = st.sampled_from(["a", "b", "c"])
seconds = st.sampled_from([-20.0, -1.0, 0.0, 1.0, 9.0, 20.0])
sure = st.sampled_from([0.5, 0.8, 0.9, 1.0])
halting = st.sampled_from([HOST_DOWN, NODE_LEFT, LAUNCHER_LOST, TELEMETRY_LOST])
verdicts = st.lists(
    st.one_of(
        st.builds(verdict, halting, nodes, st.none(), seconds),
        st.builds(
            lambda fault, node, rank, at, sure: verdict(fault, node, rank, at, "step_stall", confidence=sure),
            st.sampled_from([RANK_STOPPED, COLLECTIVE_HANG, RANK_CRASH]),
            nodes,
            st.sampled_from([None, 0, 1]),
            seconds,
            sure,
        ),
        st.builds(lambda node, at: verdict(HOST_OOM_KILL, node, None, at, "fault_rule", run="", attempt="", located=True), nodes, seconds),
    ),
    max_size=6,
)
ends = st.builds(  # an attempt has one verdict about how it failed
    lambda fault, node, rank, at, sure: verdict(fault, node, rank, at, "rank_exit", confidence=sure),
    st.sampled_from([RANK_CRASH, STARTUP_FAILURE]),
    nodes,
    st.sampled_from([None, 0, 1]),
    seconds,
    sure,
)


@given(ends, verdicts, st.data(), st.sampled_from([State.OPEN, State.MITIGATING]))
def test_once_each_verdict_was_seen_again_nothing_changes_any_more(
    end: Verdict, others: list[Verdict], data: st.DataObject, s: State
) -> None:
    seen = data.draw(st.permutations([end, *others]))
    first = data.draw(st.sampled_from([one for one in seen if one.attempt]))
    one = first_transition(first, "i", T0 + timedelta(seconds=1))
    one = move(one, s, "", T0 + timedelta(seconds=1)) if s is not State.OPEN else one
    for second in (2, 3):
        one = look(one, seen, T0 + timedelta(seconds=second))
    for second in range(4, 8):
        again = look(one, seen, T0 + timedelta(seconds=second))
        assert again is one, f"{about(one)} became {about(again)}"
    assert BY_NAME[one.fault] in {v.fault for v in seen}
