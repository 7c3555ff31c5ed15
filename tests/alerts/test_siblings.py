"""Which faults of several nodes are one: from the set of them alone. Thresholds counted by hand."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import NEAR, first_transition
from alerts.incidents.flapping import came, counted, settled_at
from alerts.incidents.siblings import LATER, SOON, Kin, Member, about, kin, member, waits, where
from pipeline.catalog.faults import FILESYSTEM_FULL, HOST_OOM_KILL, MOUNT_HUNG, RANK_CRASH, Fault
from pipeline.records import FindingTransition, IncidentTransition
from pipeline.topology import Topology, parse

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
TREE = parse(
    {
        "switches": {
            "leaf-01": {"nodes": "gpu-[001-050]", "parent": "spine-1"},
            "leaf-02": {"nodes": "gpu-[051-100]", "parent": "spine-1"},
            "leaf-03": {"nodes": "gpu-[101-150]", "parent": "spine-1"},
            "spine-1": {},
        },
        "racks": {"r07": {"nodes": "gpu-[001-016]"}},
    }
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def one(number: int, seconds: float = 0.0, fault: str = "host_oom_kill", run: str = "", device: str = "") -> Member:
    node = f"gpu-{number:03d}"
    key = f"fault_rule/{fault}|node:{node}/{device}|{run}"
    return Member(key=key, incident=key, fault=fault, run=run, attempt="", node=node, device=device, onset=at(seconds))


def found(*members: Member, tree: Topology = TREE) -> list[tuple[str, int]]:
    return sorted((str(k.place), len(k.members)) for k in kin(members, tree))


def test_three_nodes_of_a_switch_within_five_minutes_are_the_switchs_and_two_are_two() -> None:
    assert found(one(20), one(30)) == []
    assert found(one(20), one(30), one(40)) == [("switch leaf-01", 3)]
    assert found(one(20), one(30, 300), one(40, 600)) == [("switch leaf-01", 3)], "each within five minutes of the next"
    assert found(one(20), one(30), one(40, 301)) == [], "five minutes and a second later"


def test_a_place_with_many_nodes_needs_a_twentieth_of_them() -> None:
    big = parse({"pods": {"p": {"nodes": "gpu-[001-100]"}}})
    assert found(*map(one, range(1, 5)), tree=big) == []
    assert found(*map(one, range(1, 6)), tree=big) == [("pod p", 5)]


def test_the_smallest_place_that_holds_them_all_is_named() -> None:
    assert found(one(1), one(2), one(3)) == [("rack r07", 3)]
    assert found(one(1), one(2), one(3), one(40)) == [("switch leaf-01", 4)]


def test_a_switch_above_is_named_where_half_of_those_beneath_it_are_hit_not_where_a_node_elsewhere_has_the_same() -> None:
    first, second = [one(n) for n in (20, 30, 40)], [one(n) for n in (60, 70, 80)]
    assert found(*first, one(60)) == [("switch leaf-01", 3)]
    assert found(*first, *second) == [("switch spine-1", 6)], "two of three"


def test_faults_of_other_names_and_nodes_that_the_file_does_not_name_stay_apart() -> None:
    assert found(one(20), one(30), one(40, fault="mount_hung")) == []
    assert found(one(201), one(202), one(203)) == []


def test_a_fault_of_one_run_on_two_nodes_is_one_without_any_file() -> None:
    assert found(one(1, run="r"), one(99, run="r"), tree=Topology()) == [("None", 2)]
    assert found(one(1, run="r"), one(2, run="q"), tree=Topology()) == []


def test_where_it_is_said_with_the_place_the_count_and_what_they_share() -> None:
    assert where(Kin(members=(one(1), one(2), one(3)), place=TREE.places["r07"])) == "3 of 16 nodes under rack r07"
    hung = tuple(one(n, device="/data") for n in range(1, 51))
    assert where(Kin(members=hung, place=TREE.places["leaf-01"])) == "/data on 50 of 50 nodes under switch leaf-01"
    more = (*hung, *(one(n, device="/home") for n in range(1, 51)))
    assert where(Kin(members=more, place=TREE.places["leaf-01"])) == "100 places on 50 of 50 nodes under switch leaf-01"
    assert where(Kin(members=(one(1), one(99)))) == "2 nodes"
    assert where(Kin(members=(one(1), one(99)), place=TREE.places["r07"])) == "1 of 16 nodes under rack r07 and 1 more"


# --- order -----------------------------------------------------------------------------------

SHARED = parse(
    {
        "racks": {"r1": {"nodes": "gpu-[001-004]"}, "r2": {"nodes": "gpu-[005-008]"}, "r3": {"nodes": "gpu-[009-012]"}},
        "rails": {"a": {"nodes": "gpu-[001-002,005-006,009-010]"}, "b": {"nodes": "gpu-[003-004,007-008,011-012]"}},
        "pods": {"p": {}},
    }
)
some = st.lists(
    st.builds(one, st.integers(1, 13), st.sampled_from([0, 100, 290, 310, 650, 900]), st.sampled_from(["mount_hung", "host_oom_kill"])),
    max_size=24,
    unique_by=lambda m: m.key,
)


def partition(batches: list[list[Member]], tree: Topology) -> set[frozenset[str]]:
    """What becomes of findings that come in `batches`, as the leader does it: an incident each, until a look makes some of them one."""
    seen: list[Member] = []
    for batch in batches:
        seen += batch
        for related in kin(seen, tree):
            seen = [replace(m, incident=min(related.incidents)) if m.incident in related.incidents else m for m in seen]
    homes: dict[str, set[str]] = {}
    for m in seen:
        homes.setdefault(m.incident, set()).add(m.key)
    return {frozenset(keys) for keys in homes.values()}


@given(some, st.randoms(use_true_random=False), st.sampled_from([TREE, SHARED]))
def test_the_order_of_arrival_does_not_change_what_is_one_incident(members: list[Member], chance: random.Random, tree: Topology) -> None:
    at_once = partition([members], tree)
    shuffled = list(members)
    chance.shuffle(shuffled)
    assert partition([[m] for m in shuffled], tree) == at_once
    cut = chance.randint(0, len(members))
    assert partition([shuffled[:cut], shuffled[cut:]], tree) == at_once


@given(some)
def test_more_findings_only_ever_join_more(members: list[Member]) -> None:
    for n in range(len(members)):
        fewer = partition([members[:n]], SHARED)
        assert all(any(one <= other for other in partition([members], SHARED)) for one in fewer)


@given(st.lists(st.tuples(st.integers(1, 13), st.sampled_from([0, 200, 600, 900, 1300]), st.integers(0, 6)), max_size=24))
def test_no_incident_is_ever_in_two_of_them(told: list[tuple[int, int, int]]) -> None:
    """What comes and goes is in an incident more than once, at times far apart."""
    members = [replace(one(node, seconds), key=str(n), incident=str(number)) for n, (node, seconds, number) in enumerate(told)]
    found = [name for k in kin(members, SHARED) for name in k.incidents]
    assert len(found) == len(set(found))
    assert {m.key for k in kin(members, SHARED) for m in k.members} <= {m.key for m in members}


def test_what_came_twice_joins_those_that_it_was_with_at_each_time() -> None:
    early, late = [one(20), one(30), one(40)], [one(20, 600), one(60, 600), one(70, 600), one(80, 600)]
    assert found(*early, *late[1:]) == [("switch leaf-01", 3), ("switch leaf-02", 3)], "ten minutes apart"
    again = replace(late[0], node="gpu-090")
    assert found(*early, *late[1:], again) == [("switch leaf-02", 7)], "its incident is that of gpu-020, and four of the seven are there"


# --- incidents -------------------------------------------------------------------------------


def verdict(fault: Fault = HOST_OOM_KILL, node: str = "gpu-001", seconds: float = 0.0, run: str = "") -> Verdict:
    return Verdict(
        key=f"fault_rule/{fault.name}|node:{node}|{run}",
        detector="fault_rule",
        fault=fault,
        run=run,
        attempt="",
        reason="1 process was killed",
        onset=at(seconds),
        node=node,
        located=True,
    )


def opened(node: str = "gpu-001", seconds: float = 0.0, fault: Fault = HOST_OOM_KILL, run: str = "") -> IncidentTransition:
    return first_transition(verdict(fault, node, seconds, run), f"i-{node}", at(seconds))


def test_an_incident_of_many_nodes_is_about_their_switch_and_one_of_a_run_keeps_the_node_where_it_began() -> None:
    related = Kin(members=tuple(map(one, range(1, 51))), place=TREE.places["leaf-01"])
    assert about(opened(), related) == {
        "key": "host_oom_kill|switch leaf-01|",
        "title": "The kernel killed a process for want of memory: 50 of 50 nodes under switch leaf-01",
        "node": "",
        "device": "switch leaf-01",
    }
    assert about(opened(run="r"), related) == {
        "key": "host_oom_kill||r",
        "title": "The kernel killed a process for want of memory: 50 of 50 nodes under switch leaf-01, run r",
    }


def test_what_joined_an_incident_about_something_else_is_no_sign_of_a_common_cause() -> None:
    crash = replace(opened(run="r"), fault=RANK_CRASH.name, rank=1)
    assert member(verdict(), crash, T0) is None, "the run's incident"
    assert member(verdict(), opened(fault=FILESYSTEM_FULL), T0) is None
    assert member(replace(verdict(), detector="step_stall"), opened(), T0) is None
    assert member(verdict(), opened(), T0) is not None
    assert member(verdict(), replace(opened(), new_state="recovering"), T0) is None


@pytest.mark.parametrize(
    ("incident", "others", "seconds", "waiting"),
    [
        (opened(), (), 1.9, True),
        (opened(), (), 2.0, False),
        (opened("login"), (), 0.0, False),  # nobody says what it shares
        (opened(run="r"), (), 0.0, False),  # a run is hit
        (opened("gpu-002", 3), (opened(),), 17.9, True),
        (opened("gpu-002", 3), (opened(),), 18.0, False),
        (opened(), (opened("gpu-002", 3),), 3.0, False),  # the first of them waits for a moment only
        (opened("gpu-002", 3), (opened(fault=MOUNT_HUNG),), 6.0, False),
        (opened("gpu-151", 3), (opened(),), 6.0, False),
        (opened("gpu-002", 303), (opened(),), 306.0, False),  # longer ago than NEAR
    ],
)
def test_who_is_told_waits_a_moment_for_the_rest_of_a_burst(
    incident: IncidentTransition, others: tuple[IncidentTransition, ...], seconds: float, waiting: bool
) -> None:
    assert (SOON, LATER, NEAR) == (timedelta(seconds=2), timedelta(seconds=15), timedelta(minutes=5))
    assert waits(incident, (incident, *others), TREE, at(seconds)) is waiting


# --- flapping --------------------------------------------------------------------------------


def gone(key: str, onset: float, cleared: float) -> FindingTransition:
    usual = {"old_state": "open", "new_state": "cleared", "reason": "", "actor": "d", "finding": f"{key}{onset}", "detector": "d"}
    return FindingTransition(**usual, fault="f", layer="l", severity="s", key=key, onset=at(onset), at=at(cleared))


def test_what_came_back_is_counted_from_its_first_coming_to_its_last() -> None:
    """0, 60 and 150 s: three times in 2 min 30 s."""
    assert counted([gone("a", 0, 10), gone("b", 5, 10)]) == ""
    thrice = [gone("a", 60, 70), gone("a", 0, 10), gone("b", 0, 10), gone("a", 150, 160)]
    assert (came(thrice), counted(thrice)) == ((3, timedelta(seconds=150)), "3rd time in 2 min 30 s")
    assert counted([gone("a", n, n) for n in range(11)]) == "11th time in 10 s"
    assert counted([gone("a", n, n) for n in range(22)]) == "22nd time in 21 s"


def test_an_incident_may_resolve_a_settle_time_after_its_last_finding_went_and_ten_once_it_came_back() -> None:
    assert settled_at([], 60) is None
    assert settled_at([gone("a", 0, 10), gone("b", 0, 40)], 60) == (at(40), at(100))
    assert settled_at([gone("a", 0, 10), gone("a", 30, 40)], 60) == (at(40), at(640))
