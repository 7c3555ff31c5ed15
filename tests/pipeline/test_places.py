"""One launcher to a node's name, and one count of nodes to a run, for as long as somebody is heard."""

import pytest

from pipeline.catalog.runs import ASKS
from pipeline.ingest.control import LAUNCHERS, Question
from pipeline.ingest.endpoints import Refusal, refusal
from pipeline.ingest.places import RETURNS, Places, Taken

NAME_TAKEN = "another launcher of run r is heard under the node name a: give each node a name of its own"


def asks(
    instance: str, node: str = "a", *, nodes: str = "2", run: str = "r", attempt: str = "", state: str = "", wait: float = 1.0
) -> Question:
    state = state or ("running" if attempt else "starting")
    return Question(run, node, attempt, 1, state, "", wait, frozenset(), nodes, instance=instance)


def refused(places: Places, question: Question, now: float) -> str:
    try:
        places.take(question, now)
    except Taken as e:
        assert e.passing is not e.permanent
        return str(e)
    return ""


def test_the_second_launcher_under_a_name_is_refused_while_the_first_is_heard_and_let_in_after() -> None:
    places = Places(0.0)
    assert refused(places, asks("one"), 100.0) == ""
    for now in (100.1, 100.0 + ASKS - 0.1):
        assert refused(places, asks("two"), now) == NAME_TAKEN + " (SUREFOOT_NODE), or end the other launcher"
        with pytest.raises(Taken) as caught:
            places.take(asks("two"), now)
        assert refusal(caught.value) == Refusal(409, 6) and caught.value.passing, "the other one may end"
    assert refused(places, asks("two", "b"), 101.0) == "", "another name"
    assert refused(places, asks("two", run="s"), 101.0) == "", "another run"
    assert refused(places, asks("one"), 102.0) == "", "it asks again"
    assert refused(places, asks("two"), 102.0 + ASKS - 0.1).startswith(NAME_TAKEN)
    assert refused(places, asks("two"), 102.0 + ASKS) == ""
    assert refused(places, asks("one"), 102.0 + ASKS + 1).startswith(NAME_TAKEN), "the place is the second one's now"


def test_a_call_that_is_held_open_for_long_holds_the_place_for_as_long() -> None:
    places = Places(0.0)
    places.take(asks("one", wait=20.0), 100.0)
    assert refused(places, asks("two"), 120.5).startswith(NAME_TAKEN)
    assert refused(places, asks("two"), 120.0 + RETURNS) == ""


def test_a_call_that_broke_off_frees_the_place_unless_its_launcher_asks_again_or_had_done_so_already() -> None:
    places = Places(0.0)
    first = places.take(asks("one"), 100.0)
    places.broke_off(first, 100.2)
    assert refused(places, asks("two"), 100.2 + RETURNS - 0.1).startswith(NAME_TAKEN)
    assert refused(places, asks("two"), 100.2 + RETURNS) == ""

    places = Places(0.0)
    slow = places.take(asks("one"), 100.0)
    places.take(asks("one"), 103.2)  # it gave up on a call that ingest was slow to answer, and asks again
    places.broke_off(slow, 103.3)
    assert refused(places, asks("two"), 103.3 + RETURNS).startswith(NAME_TAKEN)


def test_one_that_says_that_it_ends_frees_its_place_at_once() -> None:
    places = Places(0.0)
    assert refused(places, asks("one", attempt="r-1"), 100.0) == ""
    assert refused(places, asks("one", attempt="r-1", state="gone"), 100.1) == ""
    assert refused(places, asks("two"), 100.1) == ""


def test_who_has_begun_goes_before_who_has_not_and_two_that_have_begun_are_refused_by_turns() -> None:
    places = Places(0.0)  # as after a restart of ingest: the wrong one comes first
    places.take(asks("new"), 100.0)
    assert refused(places, asks("old", attempt="r-1"), 100.1) == ""
    assert refused(places, asks("new"), 100.2).startswith(NAME_TAKEN)
    assert refused(places, asks("other", attempt="r-1"), 100.3).startswith(NAME_TAKEN)
    for state in ("ready", "done", "waiting"):  # between two attempts, or after the command's end
        places = Places(0.0)
        places.take(asks("new"), 100.0)
        assert refused(places, asks("old", state=state), 100.1) == ""


def test_after_its_start_ingest_lets_nobody_begin_before_those_that_run_had_time_to_ask_again() -> None:
    places = Places(50.0)
    assert places.unsure_for(asks("new"), 50.5) == RETURNS - 0.5
    assert places.unsure_for(asks("old", attempt="r-1"), 50.5) == 0.0
    assert places.unsure_for(asks("new"), 60.0) == 0.0


@pytest.mark.parametrize(("first", "second", "told"), [("2", "3", ("2", "3")), ("2", "2:3", ("2", "2:3")), ("", "2", ("1", "2"))])
def test_a_launcher_that_counts_the_nodes_otherwise_is_refused(first: str, second: str, told: tuple[str, str]) -> None:
    places = Places(0.0)
    places.take(asks("one", nodes=first), 100.0)
    why = f"run r goes with --nodes {told[0]} on a, and with --nodes {told[1]} here: give all its launchers the same"
    assert refused(places, asks("two", "b", nodes=second), 101.0) == why
    with pytest.raises(Taken) as caught:
        places.take(asks("two", "b", nodes=second), 101.0)
    assert refusal(caught.value) == Refusal(409, 9) and not caught.value.passing, "waiting does not change it"
    assert refused(places, asks("one", nodes=first), 101.5) == "", "the one that was there first stays"
    assert refused(places, asks("two", "b", nodes=second, attempt="r-1"), 101.6) == "", "nothing that has begun is refused for it"
    assert refused(places, asks("three", "c", nodes=first), 110.0) == "", "nobody is heard any more"


def test_the_same_count_may_be_written_in_two_ways() -> None:
    places = Places(0.0)
    places.take(asks("one", nodes="2:2"), 100.0)
    assert refused(places, asks("two", "b", nodes="2"), 100.1) == ""
    places.take(asks("one", run="s", nodes="1"), 100.0)
    assert refused(places, asks("one", run="s", nodes=""), 100.1) == ""


def test_a_run_of_one_node_takes_no_second_one() -> None:
    places = Places(0.0)
    places.take(asks("one", nodes=""), 100.0)
    why = "run r takes one node, and its launcher on a is heard: end that one, or give each launcher --nodes with the number of nodes"
    assert refused(places, asks("two", "b", nodes=""), 100.1) == why
    assert refused(places, asks("two", "b", nodes=""), 100.0 + ASKS) == "", "it moved there"


def test_it_remembers_so_many_and_no_more() -> None:
    places = Places(0.0)
    for i in range(LAUNCHERS + 1):
        places.take(asks("one", run=f"r{i}"), 100.0)
    assert refused(places, asks("two", run="r0"), 100.1) == "", "the one heard longest ago is forgotten"
    assert refused(places, asks("two", run="r5"), 100.1) != ""
