"""Figures, against values worked out by hand."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.layers import Category
from pipeline.clock import from_micros
from pipeline.loss import loss_sentence, work_at_risk
from pipeline.queries.repairs import Repair
from pipeline.records import LedgerEntry
from slo.figures import INCIDENT_PARTS, Spread, goodput, incident_costs, mttr, spent

T0 = datetime(2026, 11, 30, tzinfo=UTC)
S = 1_000_000


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


def entry(rank: int, start: float, end: float, category: str, incident: str = "") -> LedgerEntry:
    return LedgerEntry(
        run="r", attempt="r-1", generation=1, rank=rank, started_at=at(start), ended_at=at(end), category=category, incident=incident
    )


BOOK = [entry(0, 0, 10, "productive"), entry(0, 10, 20, "detect", "i"), entry(1, 0, 20, "productive")]


def test_goodput_is_a_sum_over_a_sum_and_none_of_nothing() -> None:
    assert goodput(BOOK) == 30 / 40
    assert goodput([]) is None
    assert goodput(BOOK, at(20), at(30)) is None


def test_goodput_of_a_window_cuts_the_entries_that_cross_its_edges() -> None:
    assert goodput(BOOK, at(5), at(15)) == 15 / 20
    assert spent(BOOK, at(5), at(15)) == {Category.DETECT: 5 * S, Category.PRODUCTIVE: 15 * S}


def test_a_short_bad_window_does_not_weigh_as_much_as_a_long_good_one() -> None:
    """0 of 1 s good and 1000 of 1000 s good are 1000/1001, not a half."""
    assert goodput([entry(0, 0, 1, "detect"), entry(0, 1, 1001, "productive")]) == 1000 / 1001


def test_an_incidents_cost_is_what_is_charged_to_it_by_part() -> None:
    book = [*BOOK, entry(0, 20, 25, "lost_progress", "i"), entry(1, 20, 21, "detect", "j"), entry(1, 21, 22, "restart")]
    assert {i: {c.value: m for c, m in parts.items() if m} for i, parts in incident_costs(book).items()} == {
        "i": {"detect": 10 * S, "lost_progress": 5 * S},
        "j": {"detect": S},
    }


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        ({"detect": 3, "restart": 9, "lost_progress": 29}, "lost 41 GPU-s: 3 detect, 9 restart, 29 lost progress"),
        ({"detect": 2.4, "restart": 2.4, "lost_progress": 2.2}, "lost 7 GPU-s: 3 detect, 2 restart, 2 lost progress"),
        ({"detect": 0.4, "locate": 0.0, "restart": 2.0}, "lost 2 GPU-s: 2 restart"),
        ({"detect": 0.3}, "lost less than 1 GPU-s"),
        ({}, "lost nothing"),
        ({"restart": 9999}, "lost 9999 GPU-s: 9999 restart"),
        ({"detect": 1800, "restart": 34_200}, "lost 10.0 GPU-h: 0.5 detect, 9.5 restart"),
    ],
)
def test_the_sentence_names_the_loss_and_its_parts(seconds: dict[str, float], sentence: str) -> None:
    assert loss_sentence({Category(c): round(s * S) for c, s in seconds.items()}) == sentence


@given(st.dictionaries(st.sampled_from(INCIDENT_PARTS), st.integers(0, 40_000 * S), min_size=1))
def test_the_parts_of_the_sentence_add_up_to_its_total_and_each_is_off_by_less_than_one(cost: dict[Category, int]) -> None:
    head, _, tail = loss_sentence(cost).partition(": ")
    if not tail:
        assert sum(cost.values()) < S / 2
        return
    unit = 3600 * S if head.endswith("h") else S
    smallest = Fraction(1, 10) if head.endswith("h") else Fraction(1)
    parts = {p.split(" ", 1)[1]: Fraction(p.split(" ")[0]) for p in tail.split(", ")}
    assert sum(parts.values()) == Fraction(head.split(" ")[1])
    for category, micros in cost.items():
        assert abs(parts.get(category.value.replace("_", " "), Fraction(0)) - Fraction(micros, unit)) < smallest


def test_time_to_repair_counts_incidents_resolved_in_the_window_with_their_full_length() -> None:
    """One began before the window, one is still open, one ended after it: 100 and 20 s count."""
    repairs = [
        Repair("a", at(-60), recovered=at(10), caught_up=at(30), resolved=at(40)),
        Repair("b", at(50), recovered=at(60), resolved=at(70)),
        Repair("c", at(80)),
        Repair("d", at(90), resolved=at(130)),
        Repair("e", at(-90), resolved=at(-1)),
        Repair("f", at(101)),
    ]
    found = mttr(repairs, at(0), at(100))
    assert found.resolve == Spread(2, 60.0, 60.0, 100.0)
    assert found.recover == Spread(2, 40.0, 40.0, 70.0)
    assert found.catch_up == Spread(1, 90.0, 90.0, 90.0)
    assert found.open == ("c", "d")


def test_without_a_resolved_incident_there_is_no_mttr_rather_than_zero() -> None:
    found = mttr([Repair("a", at(1))], at(0), at(10))
    assert (found.resolve, found.recover, found.catch_up, found.open) == (None, None, None, ("a",))


def test_the_ninetieth_percentile_is_the_nearest_rank() -> None:
    repairs = [Repair(str(n), at(0), resolved=at(n)) for n in range(1, 11)]
    assert mttr(repairs, at(0), at(100)).resolve == Spread(10, 5.5, 5.5, 9.0)


def test_work_at_risk_counts_from_the_last_checkpoint_or_from_the_start() -> None:
    assert work_at_risk(8, at(0), at(70), at(100)) == 240.0
    assert work_at_risk(8, at(0), None, at(100)) == 800.0
    assert work_at_risk(8, at(0), at(101), at(100)) == 0.0, "clocks differ: never negative"


@given(st.integers(0, 10**15))
def test_no_microsecond_is_lost_between_time_and_sums(length: int) -> None:
    end = from_micros(10**15 + length)
    book = [LedgerEntry(run="r", attempt="a", generation=1, rank=0, started_at=from_micros(10**15), ended_at=end, category="idle")]
    assert sum(spent(book).values()) == length
