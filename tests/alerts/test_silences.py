"""What is held back and why: matchers, intervals, and what follows for pages and actions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.silences import agrees, canonical, described, labels_of, over, parse, paused, quiet, withheld
from pipeline.errors import InputError
from pipeline.hold_records import HoldTransition, MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.records import IncidentTransition

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def hold(
    kind: type[HoldTransition] = SilenceTransition, matcher: str = "node=a", start: float = 0, end: float | None = 60, **more: Any
) -> HoldTransition:
    usual: dict[str, Any] = {"old_state": "", "new_state": "held", "reason": "rack move", "actor": "ann", "at": at(start), "hold": "h1"}
    ends_at = None if end is None else at(end)
    return kind(**{**usual, "matcher": matcher, "owner": "ann", "starts_at": at(start), "ends_at": ends_at, **more})


def incident(**changes: Any) -> IncidentTransition:
    usual: dict[str, Any] = {"old_state": "", "new_state": "open", "reason": "", "actor": "leader", "at": T0, "incident": "i", "key": "k"}
    usual |= {"fault": "rank_crash", "layer": "framework", "severity": "critical", "title": "t", "run": "r", "node": "a", "rank": 3}
    return IncidentTransition(**(usual | changes))


def ended(one: HoldTransition, minutes: float) -> HoldTransition:
    return replace(one, new_state="ended", at=at(minutes), reason="done")


# --- matchers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matcher", "agree"),
    [
        ("node=a", True),
        ("node=A", True),
        ("node=b", False),
        ("run=r", True),
        ("run=r,rank=3", True),
        ("run=r,rank=4", False),
        ("node=a, fault=rank_crash", True),
        ("node=a,fault=host_down", False),
        ("device=mlx5_0:1", False),
        ("severity=critical", True),
    ],
)
def test_a_matcher_agrees_where_all_its_parts_do(matcher: str, agree: bool) -> None:
    assert agrees(matcher, labels_of(incident())) is agree


@pytest.mark.parametrize(
    ("matcher", "said"),
    [
        ("", "no part of a matcher"),
        ("node", "no part of a matcher"),
        ("node=", "no part of a matcher"),
        ("host=a", "unknown key 'host' in a matcher; known are node, device, run, rank, fault, layer, severity"),
        ("node=a,node=b", "node stands twice"),
        ("rank=3", "together with the run or node"),
        ("run=r,rank=three", "rank must be a number"),
        ("fault=rank_crashed", "there is no fault 'rank_crashed'; did you mean rank_crash?"),
        ("severity=bad", "there is no severity 'bad'; known are critical, error, info, warning"),
        ("layer=storege,node=a", "there is no layer 'storege'; did you mean storage?"),
    ],
)
def test_a_matcher_that_is_none_is_refused_with_what_to_write(matcher: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse(matcher)
    assert "\n" not in str(caught.value)
    assert not agrees(matcher, labels_of(incident()))


def test_two_spellings_of_one_matcher_become_one() -> None:
    assert canonical(" rank=3 , run=r ") == canonical("run=r,rank=3") == "run=r,rank=3"


# --- when a hold holds -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "minutes", "holds"),
    [
        (hold(start=0, end=60), 0, True),
        (hold(start=0, end=60), 59.99, True),
        (hold(start=0, end=60), 60, False),
        (hold(start=10, end=60), 9, False),
        (hold(end=None), 10_000, True),
        (ended(hold(end=60), 30), 29, True),
        (ended(hold(end=60), 30), 30, False),
        (ended(hold(end=60), 75), 60, False),  # the leader was away when its time was over
    ],
)
def test_a_hold_holds_from_its_start_to_its_end_whenever_the_leader_closes_it(one: HoldTransition, minutes: float, holds: bool) -> None:
    assert one.holds(at(minutes)) is holds


def test_what_is_over_is_closed_once_with_the_reason() -> None:
    assert over(hold(end=60), at(59)) is None
    assert over(hold(end=60), at(61)) == "its time was over at 2026-11-30 13:00:00 UTC"
    assert over(ended(hold(end=60), 30), at(61)) is None
    assert over(hold(end=None), at(10_000)) is None


def test_a_hold_is_described_with_what_until_when_by_whom_and_why() -> None:
    assert described(hold()) == "node=a is silenced until 2026-11-30 13:00:00 UTC by ann: rack move"
    assert described(hold(MaintenanceTransition)) == "node=a is in maintenance until 2026-11-30 13:00:00 UTC by ann: rack move"
    assert described(hold(PauseTransition, "", end=None)) == "acting is paused by ann: rack move"


# --- pages -----------------------------------------------------------------------------------


def test_an_open_incident_is_quiet_while_its_silence_holds_and_not_after() -> None:
    assert quiet(incident(), [hold()], at(59)) is not None
    assert quiet(incident(), [hold()], at(60)) is None
    assert quiet(incident(node="b"), [hold()], at(5)) is None


def test_an_incident_that_was_resolved_inside_a_silence_stays_quiet_for_ever() -> None:
    resolved = incident(new_state="resolved", resolved_at=at(20))
    for later in (21, 61, 600):
        assert quiet(resolved, [ended(hold(), 30)], at(later)) is not None
    assert quiet(incident(new_state="resolved", resolved_at=at(40)), [ended(hold(), 30)], at(41)) is None, "open when the silence ended"


def test_a_silence_stops_no_action_a_maintenance_window_stops_those_on_its_node_and_a_pause_all() -> None:
    window, pause = hold(MaintenanceTransition), hold(PauseTransition, "")
    assert withheld([hold()], at(5), incident(), {"a"}) is None
    assert withheld([window], at(5), incident(), {"b"}) is not None
    assert withheld([window], at(5), incident(node="b"), {"a"}) is not None, "the action is on the node, though the incident is not"
    assert withheld([window], at(5), incident(node="b"), {"b"}) is None
    assert withheld([window], at(5), None, {"a"}) is None, "who works on a node may stop a run on it"
    assert withheld([pause], at(5), None, {"b"}) is not None
    assert withheld([pause], at(60), incident(), {"b"}) is None
    assert quiet(incident(), [window], at(5)) is not None
    assert quiet(incident(), [pause], at(5)) is None, "pages go on while acting is paused"
    assert paused([pause], at(5)) == "acting is paused until 2026-11-30 13:00:00 UTC by ann: rack move"
    assert paused([pause, window], at(61)) == ""
    longer, open_ended = replace(pause, ends_at=at(90), reason="more"), replace(pause, ends_at=None, reason="until I say so")
    assert paused([pause, longer], at(5)) == "acting is paused until 2026-11-30 13:30:00 UTC by ann: more"
    for several in ([open_ended, pause, longer], [pause, longer, open_ended]):
        assert paused(several, at(5)) == "acting is paused by ann: until I say so"
        told = withheld(several, at(5), None, {"b"})
        assert told is not None and told.reason == "acting is paused by ann: until I say so", "of several the one that holds longest"


# --- whatever the rows -----------------------------------------------------------------------

MATCHERS = st.sampled_from(["node=a", "node=b", "run=r", "run=r,rank=3", "fault=host_down", "not a matcher"])
KINDS = st.sampled_from([SilenceTransition, MaintenanceTransition, PauseTransition])


@st.composite
def held(draw: st.DrawFn) -> HoldTransition:
    start = draw(st.integers(0, 100))
    one = hold(draw(KINDS), draw(MATCHERS), start, draw(st.one_of(st.none(), st.integers(start, 200))))
    return ended(one, draw(st.integers(start, 250))) if draw(st.booleans()) else one


@given(st.lists(held(), max_size=6), st.integers(0, 300))
def test_an_incident_is_quiet_exactly_where_one_hold_about_it_holds(held: list[HoldTransition], minutes: int) -> None:
    about = {"node=a", "run=r", "run=r,rank=3"}

    def inside(h: HoldTransition) -> bool:
        ends = [e for e in (h.ends_at, h.at if h.new_state == "ended" else None) if e]
        return not isinstance(h, PauseTransition) and h.matcher in about and h.starts_at <= at(minutes) < min(ends, default=at(10**6))

    assert (quiet(incident(), held, at(minutes)) is not None) == any(map(inside, held))


@given(st.lists(held(), max_size=6), held(), st.integers(0, 300))
def test_one_more_hold_never_lets_out_what_was_held_back(held: list[HoldTransition], more: HoldTransition, minutes: int) -> None:
    if quiet(incident(), held, at(minutes)):
        assert quiet(incident(), [*held, more], at(minutes))
    if withheld(held, at(minutes), incident(), {"a"}):
        assert withheld([*held, more], at(minutes), incident(), {"a"})


@given(st.lists(held(), max_size=6), st.integers(0, 200), st.integers(0, 500))
def test_whether_a_resolved_incident_pages_never_changes_with_time(held: list[HoldTransition], resolved: int, later: int) -> None:
    one = incident(new_state="resolved", resolved_at=at(resolved))
    assert quiet(one, held, at(resolved)) == quiet(one, held, at(resolved + later))
