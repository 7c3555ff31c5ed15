"""Launchers hear what is issued for them, soon, and only that."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from exporters.job.launches import check_run
from pipeline.catalog.runs import Others
from pipeline.errors import InputError, StoreUnavailable
from pipeline.ingest.control import BEAT_GAP, LAUNCHERS, MAX_WAIT, Answer, Beats, Board, Control, Question, answer
from pipeline.queries.control import Issued, IssuedAction, IssuedAttempt, issued
from pipeline.records import ActionTransition, AttemptTransition, RunTransition
from pipeline.store import Store

NOW = datetime(2026, 10, 1, 12, 0, 0, 250_000, tzinfo=UTC)
QUERY = {"run": "r", "node": "N1", "attempt": "r-1", "launch": "1", "state": "running", "ranks": "0:alive:4711,1:exit:-9", "wait": "1.5"}
QUESTION = Question("r", "n1", "r-1", 1, "running", "0:alive:4711,1:exit:-9", 1.5, frozenset())
ACTION = IssuedAction("a1", "restart_run", "r-1", "r-2", 2, 0.0, NOW, 7, "rank 1 died")
TRANSITION = ActionTransition(
    old_state="waiting",
    new_state="issued",
    reason="rank 1 died",
    actor="leader",
    at=NOW,
    action="a1",
    key="k",
    kind="restart_run",
    mode="auto",
    term=7,
    run="r",
    attempt="r-1",
    new_attempt="r-2",
    launch=2,
    deadline=NOW,
)
GIVEN = IssuedAttempt("r-1", 1, NOW)
ATTEMPT = AttemptTransition(old_state="", new_state="issued", reason="", actor="leader", at=NOW, run="r", attempt="r-1", launch=1)


# --- the question ----------------------------------------------------------------------------


def test_a_question_is_read_from_the_url() -> None:
    assert Question.from_query({**QUERY, "seen": "a,b,", "later": "ignored"}) == replace(QUESTION, seen=frozenset({"a", "b"}))
    assert Question.from_query({"run": "r", "node": "n1", "state": "starting", "wait": "3600"}).wait == MAX_WAIT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": ""}, "parameter run is missing"),
        ({"node": ""}, "parameter node is missing"),
        ({"state": "dancing"}, "parameter state must be one of done, finishing, gone, ready, running, starting, stopping, waiting"),
        ({"wait": "soon"}, "parameter wait must be a number from 0"),
        ({"wait": "nan"}, "parameter wait must be a number from 0"),
        ({"wait": "-1"}, "parameter wait must be a number from 0"),
        ({"launch": "99999999999"}, "parameter launch must be a number from 0"),
        ({"run": "x" * 61}, "run id 'x+' must be 1 to 60 letters, digits, dots"),
        ({"run": "<b>ghost'"}, "run id .* must be 1 to 60 letters, digits, dots"),
        ({"run": "../up"}, "run id '../up' must be 1 to 60 letters, digits, dots"),
        ({"node": "x" * 300}, "parameter node is longer than 256"),
        ({"node": "a,b"}, "parameter node must be letters, digits"),
        ({"node": "../x"}, "parameter node must be letters, digits"),
        ({"nodes": "4:2"}, "nodes '4:2' must be a number such as 4"),
        ({"waited": "-1"}, "parameter waited must be a number from 0"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_by_name(change: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Question.from_query({**QUERY, **change})


def test_a_run_may_be_asked_about_by_every_name_that_surefoot_run_takes_and_no_other() -> None:
    for name in ("r", "9", "a.b_c-d", "x" * 60, "", " r", "-r", ".r", "r\n", "r/s", "é", "x" * 61):
        asked, started = True, True
        try:
            Question.from_query({**QUERY, "run": name})
        except InputError:
            asked = False
        try:
            check_run(name)
        except InputError:
            started = False
        assert asked == started, name


def test_changes_become_beats_at_once_and_repetitions_at_most_twice_a_second() -> None:
    beats = Beats()
    assert beats.due(QUESTION, 100.0) == (True, True)
    assert beats.due(QUESTION, 100.0 + BEAT_GAP / 2) == (False, False)
    assert beats.due(replace(QUESTION, state="stopping"), 100.3) == (True, True)
    assert beats.due(replace(QUESTION, state="stopping"), 100.4) == (False, False)
    assert beats.due(replace(QUESTION, state="stopping"), 100.3 + BEAT_GAP) == (True, False)
    assert beats.due(replace(QUESTION, node="n2"), 100.31) == (True, True)  # another launcher


# --- the answer ------------------------------------------------------------------------------


def test_the_answer_is_written_as_the_contract_says() -> None:
    assert Answer(7, IssuedAttempt("r-2", 2, NOW, ("n1", "n2"), "10.0.0.1", "/c/80"), (ACTION,), "it is over").to_json() == {
        "term": 7,
        "attempt": {"id": "r-2", "launch": 2, "nodes": ["n1", "n2"], "master": "10.0.0.1", "resume": "/c/80"},
        "end": "it is over",
        "without": "",
        "requests": [
            {
                "id": "a1",
                "kind": "restart_run",
                "attempt": "r-1",
                "new_attempt": "r-2",
                "launch": 2,
                "grace": 0.0,
                "deadline_us": 1_790_856_000_250_000,
                "term": 7,
                "reason": "rank 1 died",
            }
        ],
    }


def test_what_a_launcher_has_seen_is_no_news() -> None:
    heard = answer(replace(QUESTION, seen=frozenset({"a1"})), Issued(7, (ACTION,)), NOW)
    assert (heard.requests, heard.news, heard.term) == ((), False, 7)
    assert answer(QUESTION, Issued(7, (ACTION,)), NOW).requests == (ACTION,)


def test_an_attempt_is_given_only_to_a_launcher_that_has_none_and_asks_for_this_launch_or_an_earlier_one() -> None:
    waiting = Issued(7, (), (GIVEN, IssuedAttempt("r-2", 2, NOW)))
    assert answer(replace(QUESTION, attempt="", launch=2), waiting, NOW).attempt == IssuedAttempt("r-2", 2, NOW)
    assert answer(replace(QUESTION, attempt="", launch=3), waiting, NOW).attempt is None
    assert answer(QUESTION, waiting, NOW).attempt is None
    used_up = Issued(7, (), (IssuedAttempt("r-5", 5, NOW),))
    assert answer(replace(QUESTION, attempt="", launch=2), used_up, NOW).attempt == IssuedAttempt("r-5", 5, NOW)


def test_an_attempt_of_several_nodes_is_given_to_those_that_it_names_and_that_asked_before_it_was_issued() -> None:
    both = IssuedAttempt("r-2", 2, NOW, ("n1", "n2"), "10.0.0.1")
    waiting, later = Issued(7, (), (both,)), NOW + timedelta(seconds=30)
    asking = replace(QUESTION, attempt="", launch=2, state="ready", nodes="2", waited=31.0)
    assert answer(asking, waiting, later).attempt == both, "the slowest hears it 30 s later, too"
    assert answer(replace(asking, node="n3"), waiting, later).attempt is None, "a spare"
    assert answer(replace(asking, waited=5.0), waiting, later).attempt is None, "it was started since: what runs is not meant for it"
    alone = Issued(7, (), (GIVEN,))
    assert answer(replace(asking, launch=1), alone, later).attempt is None, "an attempt of one node is no launcher's of several"


def test_who_is_not_of_an_attempt_that_is_under_way_is_told_which_one_goes_on_without_it() -> None:
    third = IssuedAttempt("r-3", 3, NOW, ("n1", "n2"), "10.0.0.1")
    waiting = Issued(7, (), (IssuedAttempt("r-2", 2, NOW - timedelta(seconds=9), ("n1", "n3")), third))
    spare = replace(QUESTION, node="n4", attempt="", launch=1, state="starting", nodes="2", waited=60.0)
    assert answer(spare, waiting, NOW).without == "r-3"
    assert answer(replace(spare, node="n2"), waiting, NOW).without == "", "it is given that very attempt"
    assert answer(replace(QUESTION, node="n3", attempt="r-2", launch=2), waiting, NOW).without == "r-3", "it was left out"
    assert answer(replace(QUESTION, node="n1", attempt="r-2", launch=2), waiting, NOW).without == ""
    assert answer(replace(QUESTION, node="n2", attempt="r-3", launch=3), waiting, NOW).without == "", "it carries it"
    ready = replace(spare, node="n1", state="ready", launch=4, waited=0.5)
    assert answer(ready, waiting, NOW).without == "", "what it waits for is a later one"
    assert answer(replace(QUESTION, attempt="r-0", launch=0), Issued(7, (), (GIVEN,)), NOW).without == "", "of one node nobody is left out"


def test_who_began_an_attempt_by_itself_hears_when_it_was_adopted_and_with_whom() -> None:
    waiting = Issued(7, (), (IssuedAttempt("r-1", 1, NOW, ("n1", "n2"), "10.0.0.1"),))
    heard = answer(replace(QUESTION, nodes="2", waited=9.0), waiting, NOW)
    assert heard.to_json()["adopted"] == {"id": "r-1", "launch": 1, "nodes": ["n1", "n2"], "master": "10.0.0.1", "resume": ""}
    assert heard.without == "" and not heard.news
    assert "adopted" not in answer(replace(QUESTION, nodes="2"), waiting, NOW).to_json(), "it was given it"


def test_who_is_finishing_hears_how_many_of_its_attempt_ended_well_too_and_how_many_go_on() -> None:
    beats = Beats(began=100.0)
    mine = replace(QUESTION, state="finishing")
    for node, state, attempt in [
        ("n1", "finishing", "r-1"),
        ("n2", "done", "r-1"),
        ("n3", "running", "r-1"),
        ("n4", "waiting", "r-1"),
        ("n5", "gone", "r-1"),
        ("n6", "ready", ""),
        ("n7", "running", "r-0"),
    ]:
        beats.due(replace(QUESTION, node=node, state=state, attempt=attempt), 105.0)
    beats.due(replace(QUESTION, run="s", node="n8"), 105.0)
    assert beats.others(mine, 109.0) is None, "ingest has just begun: it cannot know who is there"
    assert beats.others(mine, 111.0) == Others(finished=1, unfinished=2)
    assert beats.others(mine, 115.0) == Others(finished=1, unfinished=0), "nobody waits for the silent, and what ended well stays so"
    beats.due(replace(QUESTION, node="n2", state="gone", attempt="r-1", ranks="well"), 116.0)
    assert beats.others(mine, 300.0) == Others(finished=1, unfinished=0), "also where its launcher has left since"
    assert beats.others(replace(mine, run="t"), 111.0) == Others(0, 0)
    assert Answer(7, None, (), others=Others(1, 2)).to_json()["others"] == {"finished": 1, "unfinished": 2}


def test_of_more_launchers_than_are_remembered_the_one_that_was_silent_longest_is_forgotten_wherever_it_was_noted() -> None:
    beats = Beats(0.0)
    for n in range(LAUNCHERS + 2):
        beats.due(replace(QUESTION, run="old" if n == 0 else "r", node=f"n{n}", state="done"), 100.0)
    assert len(beats.last) == LAUNCHERS and beats.nodes.keys() == {"r"}
    assert sum(map(len, beats.nodes.values())) == LAUNCHERS
    assert beats.others(replace(QUESTION, state="finishing", node="n2"), 101.0) == Others(finished=LAUNCHERS - 1, unfinished=0)


# --- the read model, in the real store -------------------------------------------------------


def test_only_what_is_issued_now_is_read(store: Store) -> None:
    later = NOW + timedelta(seconds=1)
    store.insert(
        [
            TRANSITION,
            replace(TRANSITION, action="a2", at=NOW - timedelta(seconds=1), deadline=None, grace=2.5),
            replace(TRANSITION, action="a3"),
            replace(TRANSITION, action="a3", old_state="issued", new_state="accepted", at=later),
            replace(TRANSITION, action="a4", new_state="waiting", term=9),
            replace(TRANSITION, action="a5", run="other"),
        ],
        token="1",
    )
    store.insert(
        [
            ATTEMPT,
            replace(ATTEMPT, attempt="r-2", launch=2),
            replace(ATTEMPT, attempt="r-2", launch=2, old_state="issued", new_state="starting", at=later),
        ],
        token="2",
    )
    found = issued(store, ["r", "none"])
    a2, a3 = replace(ACTION, id="a2", deadline=None, grace=2.5), replace(ACTION, id="a3")
    assert found == {"r": Issued(9, (a2, ACTION, a3), (GIVEN,)), "none": Issued(9)}, (
        "the accepted a3: other launchers of the run have to hear it"
    )
    assert issued(store, []) == {}


def test_an_attempt_of_several_is_read_until_it_stops_with_its_nodes_in_order_and_so_is_the_runs_end(store: Store) -> None:
    several = replace(ATTEMPT, nodes="n2,n1", master="10.0.0.2", resume_from="/c/80", node="n2")
    running = replace(several, new_state="running", resume_from="/elsewhere", at=NOW + timedelta(seconds=5))
    store.insert([several, running], token="1")
    given = IssuedAttempt("r-1", 1, NOW, ("n2", "n1"), "10.0.0.2", "/c/80")
    assert issued(store, ["r"])["r"] == Issued(0, (), (given,))
    store.insert([replace(running, new_state="stopping", at=NOW + timedelta(seconds=6))], token="2")
    over = RunTransition(old_state="started", new_state="finished", reason="all done", actor="launcher:n2", at=NOW, run="r", node="n2")
    store.insert([over], token="3")
    assert issued(store, ["r"])["r"] == Issued(0, (), (), "all done")


def test_an_empty_store_has_nothing_for_anybody(store: Store) -> None:
    assert issued(store, ["r"]) == {"r": Issued(0)}


def test_it_is_read_again_only_when_something_was_written_or_somebody_new_asks(store: Store) -> None:
    queries: list[str] = []

    class Counting:
        def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
            queries.append(sql)
            return store.query(sql, parameters)

    board = Board(Counting)
    assert board.read(["r"])["r"] == Issued(0)
    assert board.read(["r"])["r"] == Issued(0)
    assert len(queries) == 3  # count, read, count
    store.insert([TRANSITION], token="1")
    assert board.read(["r"])["r"].actions == (ACTION,)
    store.insert([ATTEMPT], token="2")
    assert board.read(["r"])["r"].attempts == (GIVEN,)
    assert len(queries) == 7
    assert board.read(["r", "s"])["s"] == Issued(7)
    assert len(queries) == 9


# --- waiting ---------------------------------------------------------------------------------


class FakeStore:
    """What is issued, and how often it was asked for."""

    def __init__(self) -> None:
        self.issued: dict[str, Issued] = {}
        self.asked: list[tuple[float, set[str]]] = []
        self.error: Exception | None = None

    async def ask(self, runs: Iterable[str]) -> Mapping[str, Issued]:
        self.asked.append((time.monotonic(), set(runs)))
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return self.issued


def test_news_ends_the_wait_within_one_poll() -> None:
    async def story() -> tuple[Answer, float]:
        board, began = FakeStore(), time.monotonic()
        asyncio.get_running_loop().call_later(0.1, board.issued.update, {"r": Issued(7, (ACTION,))})
        return await Control(board.ask, poll=0.02).wait(replace(QUESTION, wait=10)), time.monotonic() - began

    heard, seconds = asyncio.run(story())
    assert heard.requests == (ACTION,)
    assert 0.1 <= seconds < 5.0


def test_without_news_the_wait_ends_in_time_with_an_empty_answer() -> None:
    async def story() -> tuple[Answer, float, Answer, FakeStore]:
        board, began = FakeStore(), time.monotonic()
        control = Control(board.ask, poll=0.02)
        first = await control.wait(replace(QUESTION, wait=0.2))
        return first, time.monotonic() - began, await control.wait(replace(QUESTION, wait=0)), board

    first, seconds, second, board = asyncio.run(story())
    assert first == second == Answer(0, None, ())
    assert seconds >= 0.2
    assert len(board.asked) <= 13


def test_all_that_wait_share_one_query_and_nobody_waiting_means_no_query() -> None:
    began = time.monotonic()

    async def story() -> FakeStore:
        board = FakeStore()
        control = Control(board.ask, poll=0.05)
        questions = [replace(QUESTION, run=f"r{i}", wait=0.3) for i in range(500)]
        await asyncio.gather(*(control.wait(q) for q in questions))
        asked = len(board.asked)
        await asyncio.sleep(0.2)
        assert len(board.asked) == asked
        return board

    board = asyncio.run(story())
    times = [at for at, _ in board.asked]
    assert len(times) - 1 <= (times[-1] - began) / 0.049
    assert max(len(runs) for _, runs in board.asked) == 500


def test_a_store_that_is_away_is_said_to_everybody_who_waits_and_the_next_question_works() -> None:
    async def story() -> list[Answer | BaseException]:
        board = FakeStore()
        board.error = StoreUnavailable("away")
        control = Control(board.ask, poll=0.01)
        failed = await asyncio.gather(*(control.wait(QUESTION) for _ in range(3)), return_exceptions=True)
        board.error = None
        return [*failed, await control.wait(replace(QUESTION, wait=0))]

    *failed, answered = asyncio.run(story())
    assert [type(e) for e in failed] == [StoreUnavailable] * 3
    assert answered == Answer(0, None, ())


def test_closing_lets_everybody_go_at_once_and_a_client_that_left_is_forgotten() -> None:
    async def story() -> float:
        board, began = FakeStore(), time.monotonic()
        control = Control(board.ask, poll=0.01)
        gone = asyncio.ensure_future(control.wait(replace(QUESTION, wait=20)))
        stays = asyncio.ensure_future(control.wait(replace(QUESTION, wait=20)))
        await asyncio.sleep(0.05)
        gone.cancel()
        await asyncio.sleep(0.05)
        control.close()
        assert await stays == Answer(0, None, ())
        return time.monotonic() - began

    assert asyncio.run(story()) < 5
