"""The verdicts of benches, and the page they are written to."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.__main__ import main
from benchmarks.harness import Goal, Result, compare, median_bounds, verdict
from benchmarks.registry import BENCHES

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "goal", "expected"),
    [
        (3.0, 2.9, 3.1, Goal(4.0, "<="), "met"),
        (5.0, 4.9, 5.1, Goal(4.0, "<="), "missed"),
        (3.9, 3.6, 4.2, Goal(4.0, "<="), "not-resolved"),
        (0.8, 0.79, 0.81, Goal(0.75, ">="), "met"),
        (0.2, 0.19, 0.21, Goal(0.75, ">="), "missed"),
        (0.75, 0.75, 0.75, Goal(0.75, ">="), "met"),
    ],
)
def test_a_verdict_needs_a_spread_narrower_than_the_distance_to_the_goal(
    ratio: float, low: float, high: float, goal: Goal, expected: str
) -> None:
    assert verdict(ratio, low, high, goal) == expected


@pytest.mark.parametrize("n", range(6, 40))
def test_the_interval_is_the_narrowest_by_rank_that_holds_the_median_with_95_percent(n: int) -> None:
    def missed(cut: int) -> float:
        """Chance that more than n - cut, or fewer than cut, of n figures lie below the median; both sides, the ends left out."""
        return 2 * sum(math.comb(n, k) for k in range(cut + 1)) / 2**n

    low, high = median_bounds([float(k) for k in range(n)])
    cut = int(low)
    assert high == n - 1 - cut
    assert missed(cut) <= 0.05
    assert cut + 1 >= n // 2 or missed(cut + 1) > 0.05


def test_few_figures_give_their_whole_range() -> None:
    assert median_bounds([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_bounds([1.0]) == (1.0, 1.0)


def test_pairs_are_interleaved_and_the_first_pair_does_not_count() -> None:
    calls: list[str] = []

    def measure(name: str, figure: float) -> float:
        calls.append(name)
        return 100.0 if len(calls) <= 2 else figure

    result = compare("x", "", lambda: measure("ours", 6.0), lambda: measure("peer", 2.0), Goal(4.0, "<="), lambda f: f"{f:.0f}ns", 3)
    assert calls == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]
    assert result.line == "bench x ours=6ns peer=2ns ratio=3 goal=<=4 met"


def test_a_line_that_is_not_resolved_prints_its_interval_and_a_skipped_one_its_reason() -> None:
    unclear = Result("x", "", "not-resolved", "<=4", "4ns", "1ns", 3.9, 3.5, 4.25)
    assert unclear.line == "bench x ours=4ns peer=1ns ratio=3.9 goal=<=4 not-resolved [3.5, 4.25]"
    assert Result.skip("x", "no chdb").line == "bench x skipped: no chdb"


def test_a_bench_not_run_again_keeps_its_row(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "benchmark.md"
    report.update(page, [Result("b", "x : y", "met", "<=4", "1ns", "2ns", 0.5, 0.4, 0.6), Result.skip("a", "no chdb")], NOW)
    report.update(page, [Result("a", "u : v", "missed", "<=1", "3ns", "1ns", 3, 2.9, 3.1)], NOW)
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| a |", "| b |"))]
    assert rows == [
        "| a | u : v | 3ns | 1ns | 3 | 2.9 to 3.1 | <=1 | missed | 2026-11-30 |",
        "| b | x : y | 1ns | 2ns | 0.5 | 0.4 to 0.6 | <=4 | met | 2026-11-30 |",
    ]


def test_the_page_names_the_machine_and_the_versions() -> None:
    import platform

    where = report.machine()
    assert "cores" in where and f"Python {platform.python_version()}" in where


def test_an_unknown_bench_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hok"]) == 2
    assert capsys.readouterr().err == f"no bench is called hok; there are: {', '.join(name for name, _ in BENCHES)}\n"
