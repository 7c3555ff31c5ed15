"""How counters grew: wide ones, those that go round, those that stay at their top, and over a while. Expected values by hand."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.growth import Growth, increase
from alerts.watched import Said, judge
from pipeline.catalog.faults import CONGESTION
from pipeline.catalog.metric import F64, U64, C, G, Metric
from pipeline.catalog.metrics import BY_NAME
from pipeline.catalog.rules import Limit, Rule, View

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
WIDE = Metric("rdma_port.wide", "1", C, U64, 0, None, "Wide")
ROUND = Metric("rdma_port.round", "1", C, U64, 0, None, "Goes round", 32)
STAYS = Metric("rdma_port.stays", "1", C, U64, 0, None, "Stays", 8, saturates=True)
GAUGE = Metric("rdma_port.gauge", "1", G, F64, 0, None, "Gauge")
WAIT = BY_NAME["rdma_port.send_wait"][1]
DOWNS = BY_NAME["rdma_port.link_downs"][1]


@pytest.mark.parametrize(
    ("metric", "before", "value", "expected"),
    [
        (WIDE, 3, 5, 2),
        (WIDE, 5, 5, 0),
        (WIDE, 5, 2, 2),  # it began anew: those two came since
        (WIDE, 2**32 - 10, 4, 4),
        (ROUND, 4_294_967_290, 4, 10),  # 2^32 - 4294967290 = 6 to the top and through 0, and 4 more
        (ROUND, 4_294_967_295, 0, 1),
        (ROUND, 100, 4, 4),  # far from the top: begun anew
        (ROUND, 4_000_000_000, 2_000_000_000, 2_000_000_000),  # nobody counts half a round between two readings
        (ROUND, 5 * 10**9, 4, 4),  # another maker's, and wider
        (STAYS, 14, 27, 13),
        (STAYS, 250, 255, 5),  # at least
        (STAYS, 255, 255, None),
        (STAYS, 255, 3, 3),  # somebody has reset it
        (STAYS, 250, 1, 1),
        (GAUGE, 5, 2, -3),
        (WAIT, 2**32 - 1, 2**32 - 1, None),  # C21: unknown, not 0
        (BY_NAME["nfs_server.read"][1], 4_294_967_000, 1_304, 1_600),  # C23: 296 to the top, and 1,304 more
    ],
)
def test_an_increase_respects_width_and_saturation(metric: Metric, before: float, value: float, expected: float | None) -> None:
    assert increase(metric, before, value) == expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**29))
def test_a_counter_that_goes_round_loses_nothing(before: int, grown: int) -> None:
    after = (before + grown) % 2**32
    expected = grown if after >= before or before >= 3 * 2**30 else after
    assert increase(ROUND, before, after) == expected


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def grown(metric: Metric, *readings: tuple[float, float], keep: float = 3600) -> Growth:
    growth = Growth(metric, keep)
    for seconds, value in readings:
        growth.add(at(seconds), value)
    return growth


# C22
def test_a_counter_that_has_stood_at_fourteen_for_a_day_has_not_grown() -> None:
    assert grown(DOWNS, (0, 14), (10, 14), (20, 14)).over(3600) == 0


# C22
def test_thirteen_in_an_hour_are_thirteen_wherever_the_readings_lie() -> None:
    growth = grown(DOWNS, *((300 * n, 14 + n) for n in range(14)))  # 14 -> 27, one every five minutes: 65 minutes
    assert growth.over(3600) == 12, "the first was an hour and five minutes ago"
    assert growth.over(600) == 2


# C34
def test_what_came_in_while_nobody_looked_for_long_is_nobodys_and_a_first_reading_says_nothing() -> None:
    assert grown(DOWNS, (0, 3)).over(600) is None
    growth = grown(DOWNS, (0, 3), (10, 4), (700, 9))
    assert growth.over(3600) is None
    growth.add(at(710), 10)
    assert growth.over(3600) == 2, "the one at 10 s and the one at 710 s"


def test_a_counter_at_its_top_says_nothing_and_speaks_again_once_it_is_reset() -> None:
    growth = grown(DOWNS, (0, 250), (10, 255))
    assert growth.over(600) == 5
    growth.add(at(20), 255)
    assert growth.over(600) is None
    growth.add(at(30), 1)
    assert growth.over(600) == 6


def test_a_reading_that_comes_late_or_twice_changes_nothing() -> None:
    growth = grown(DOWNS, (0, 1), (10, 3))
    growth.add(at(10), 99)
    growth.add(at(5), 0)
    assert growth.over(600) == 2


@given(st.lists(st.integers(0, 3), min_size=2, max_size=80), st.sampled_from([30, 60, 120, 600]))
def test_over_a_while_it_is_the_difference_to_the_value_at_its_beginning(steps: list[int], window: int) -> None:
    values = [sum(steps[: n + 1]) for n in range(len(steps))]
    growth = grown(WIDE, *((10 * n, value) for n, value in enumerate(values)), keep=600)
    begin = max(0, len(values) - 1 - window // 10)
    assert growth.over(window) == values[-1] - values[begin]


# --- in a rule ---------------------------------------------------------------------------------

MARKED, RECEIVED = BY_NAME["rdma_port.ecn_marked"][1], BY_NAME["rdma_port.received.packets"][1]


def share(before: dict[str, float], after: dict[str, float | None], seconds: float = 10) -> tuple[Said, float | None]:
    rule = Rule(fault=CONGESTION, when=(Limit(MARKED, 0.05, 0.01, of=RECEIVED, view=View.SHARE),), says="", cleared="")
    earlier = {name: (at(-seconds), value) for name, value in before.items()}
    return judge(rule, (NOW, after), earlier, 35.0)


def counts(marked: float, received: float) -> dict[str, float]:
    return {MARKED.name: marked, RECEIVED.name: received}


def told(marked: float | None, received: float | None) -> dict[str, float | None]:
    return {MARKED.name: marked, RECEIVED.name: received}


def test_a_share_is_an_increase_by_an_increase() -> None:
    assert share(counts(100, 1000), told(110, 1100)) == (Said.BAD, 0.1)
    assert share(counts(100, 1000), told(100, 1100)) == (Said.GOOD, 0.0)
    assert share(counts(100, 1000), told(100, 1000)) == (Said.GOOD, 0.0), "an idle port is not congested"
    assert share(counts(100, 1000), told(101, 1000))[0] is Said.UNKNOWN, "of nothing there is no share"
    assert share(counts(100, 1000), told(110, None))[0] is Said.UNKNOWN
    assert share(counts(100, 1000), told(110, 1100), 40)[0] is Said.UNKNOWN, "over a gap"
    assert share({MARKED.name: 100}, told(110, 1100))[0] is Said.UNKNOWN


def test_a_rate_of_a_counter_at_its_top_is_unknown_and_not_nothing() -> None:
    rule = Rule(fault=CONGESTION, when=(Limit(WAIT, 100, 10, view=View.RATE),), says="", cleared="")
    top = 2.0**32 - 1
    assert judge(rule, (NOW, {WAIT.name: top}), {WAIT.name: (at(-10), top)}, 35.0) == (Said.UNKNOWN, None)
    assert judge(rule, (NOW, {WAIT.name: top}), {WAIT.name: (at(-10), top - 2000)}, 35.0) == (Said.BAD, 200.0)
