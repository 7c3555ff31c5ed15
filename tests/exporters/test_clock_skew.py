"""This machine's clock against the time in ingest's answers."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from exporters.collector import Site
from exporters.host.clock import LIMIT, REPEAT, ClockCollector
from exporters.sending.offset import AGE, APART, SLACK, ClockOffset
from exporters.sending.sender import Sender
from pipeline.clock import monotonic
from pipeline.records import Event

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
T = NOW.timestamp()


def date(seconds: float) -> str:
    """A server's Date at that time: whole seconds, as it was up to a second before."""
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, 0.5), st.floats(0, 0.9)), min_size=1, max_size=30))
def test_the_true_difference_is_never_further_away_than_half_the_slack_and_the_way(
    offset: float, answers: list[tuple[float, float, float]]
) -> None:
    mine, at = ClockOffset(), 0.0
    for apart, way, stale in answers:
        at += apart
        server = T + at  # when the answer was made; `way` to it and back
        mine.answered(date(server - stale), server + offset - way, server + offset + way, at)
        told = mine.seconds(at)
        assert (told is None) is (at - answers[0][0] < APART)
        assert told is None or abs(told - offset) <= SLACK / 2 + 0.5 + 1e-6


def test_answers_at_other_moments_of_the_second_make_it_exacter() -> None:
    mine = ClockOffset()
    for n in range(20):
        server = T + n * 1.05
        mine.answered(date(server), server + 7.0, server + 7.0, n * 1.05)
    told = mine.seconds(21.0)
    assert told is not None and abs(told - 7.0) <= 0.6


def heard(mine: ClockOffset, at: float, offset: float, stale: float = 0.0) -> float | None:
    """What is believed after an answer at that monotonic time, whose Date is `stale` seconds old."""
    mine.answered(date(T + at - stale), T + at + offset, T + at + offset, at)
    return mine.seconds(at)


def test_a_clock_that_is_set_is_believed_at_the_second_answer_and_an_old_answer_not_at_all() -> None:
    mine = ClockOffset()
    assert heard(mine, 0.0, 0.0) is None, "one answer may lie"
    assert abs(heard(mine, 1.0, 0.0) or 9) <= 1
    assert abs(heard(mine, 10.0, 43_200.0) or 9) <= 1
    assert abs(heard(mine, 10.5, 43_200.0) or 9) <= 1, "too soon after it to bear it out"
    assert abs((heard(mine, 11.0, 43_200.0) or 0) - 43_200) <= 1
    heard(mine, 20.0, -3600.0)
    assert abs((heard(mine, 22.0, -3600.0) or 0) + 3600) <= 1
    assert mine.seconds(22.0 + AGE + 1) is None


def test_a_server_that_stood_still_and_answers_with_an_old_time_is_not_believed() -> None:
    mine = ClockOffset()
    heard(mine, 0.0, 0.0)
    heard(mine, 1.0, 0.0)
    assert abs(heard(mine, 9.0, 0.0, stale=7.0) or 9) <= 1
    assert abs(heard(mine, 9.1, 0.0, stale=7.1) or 9) <= 1
    assert abs(heard(mine, 10.0, 0.0) or 9) <= 1


@pytest.mark.parametrize("header", [None, "", "yesterday", "Tue, 99 Dec 2026 12:00:00 GMT", "\x00", "1"])
def test_an_answer_without_a_time_says_nothing(header: str | None) -> None:
    mine = ClockOffset()
    mine.answered(header, T, T, 0.0)
    mine.answered(date(T), T, T - 100, 0.0)  # our clock was set back while we waited
    assert mine.seconds(0.0) is None


@given(st.text())
def test_any_header_is_read_or_left(header: str) -> None:
    ClockOffset().answered(header, T, T, 0.0)


def test_the_sender_learns_it_from_every_answer_also_from_a_refusal(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/v1/logs").respond_with_data(b"", 400)
    sender = Sender(httpserver.url_for(""), "t", node="n")
    assert sender.clock_offset() is None
    at = monotonic()
    while (told := sender.clock_offset()) is None:
        assert monotonic() < at + 60
        sender.send_records([("surefoot.event", Event(id="1", at=NOW, kind="phase", layer="framework", severity="info"))])
        time.sleep(0.2)
    sender.close(5.0)
    assert abs(told) < 30, "the server has our own clock"


# --- what is told of it -------------------------------------------------------------------------


@pytest.fixture
def told() -> Callable[[float | None, float], list[Event]]:
    """What the collector tells where the clock is off by so much, at that monotonic time."""
    state: dict[str, float | None] = {"offset": None, "clock": 0.0}
    collector = ClockCollector(replace(Site("node1"), clock_offset=lambda: state["offset"]), clock=lambda: state["clock"] or 0.0)

    def tell(offset: float | None, clock: float) -> list[Event]:
        state.update(offset=offset, clock=clock)
        return list(collector.collect(NOW + timedelta(seconds=offset or 0)))

    return tell


# C36
def test_a_clock_twelve_hours_ahead_is_told_in_ingests_time_and_again_while_it_lasts(
    told: Callable[[float | None, float], list[Event]],
) -> None:
    (event,) = told(43_200.0, 0.0)
    assert (event.kind, event.code, event.attrs["offset"], event.at) == ("clock_skewed", "ahead", "43200.0", NOW)
    assert told(43_200.0, REPEAT - 1) == []
    (again,) = told(43_200.0, REPEAT)
    assert again.id != event.id
    (behind,) = told(-LIMIT, 2 * REPEAT)
    assert (behind.code, behind.at) == ("behind", NOW)


def test_a_clock_that_is_right_or_not_known_is_no_event_and_one_that_is_off_again_is_told_at_once(
    told: Callable[[float | None, float], list[Event]],
) -> None:
    assert told(None, 0.0) == [] and told(LIMIT - 0.01, 1.0) == []
    assert len(told(3.0, 2.0)) == 1
    assert told(0.0, 3.0) == []
    assert len(told(3.0, 4.0)) == 1
