"""Numbers and times as people read them; expectations worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard import parts, words

NOW = datetime(2026, 11, 30, 14, 3, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "no data"),
        (float("nan"), "no data"),
        (0.0, "0 ms"),
        (0.0124, "12 ms"),
        (0.24, "0.24 s"),
        (0.996, "1.0 s"),
        (3.21, "3.2 s"),
        (9.96, "10 s"),
        (41.4, "41 s"),
        (59.6, "1 min 00 s"),
        (200.0, "3 min 20 s"),
        (3599.9, "1 h 00 min"),
        (7500.0, "2 h 05 min"),
        (3 * 86400 + 4 * 3600.0, "3 d 4 h"),
        (-5.0, "-5.0 s"),
    ],
)
def test_a_duration_is_said_in_the_largest_units_that_still_tell(seconds: float | None, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("back", "said"),
    [(0.4, "just now"), (-1.2, "just now"), (3.4, "3 s ago"), (42.0, "42 s ago"), (200.0, "3 min 20 s ago"), (-30.0, "in 30 s")],
)
def test_an_age_is_said_as_seen_from_now(back: float, said: str) -> None:
    assert words.ago(NOW - timedelta(seconds=back), NOW) == said


def test_what_never_happened_is_never_and_not_an_age() -> None:
    assert words.ago(None, NOW) == "never"
    assert words.when(None, NOW) == "no data"


def test_a_time_carries_its_date_only_on_another_day() -> None:
    assert words.when(NOW - timedelta(seconds=12), NOW) == "14:03:10 UTC (12 s ago)"
    assert words.clock(NOW - timedelta(days=1), NOW) == "2026-11-29 14:03:22 UTC"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(None, "no data"), (0.0, "0.0 %"), (0.0004, "< 0.1 %"), (0.972, "97.2 %"), (0.9996, "99.9 %"), (1.0, "100.0 %"), (0.29, "29.0 %")],
)
def test_a_ratio_becomes_percent_and_is_never_rounded_up_to_all(ratio: float | None, said: str) -> None:
    assert words.percent(ratio) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 GPU-s"),
        (0.42, "0.4 GPU-s"),
        (41.0, "41 GPU-s"),
        (3000.0, "3,000 GPU-s"),
        (45_000.0, "12.5 GPU-h"),
        (4_464_000.0, "1,240 GPU-h"),
    ],
)
def test_gpu_time_turns_from_seconds_to_hours(seconds: float, said: str) -> None:
    assert words.gpu_time(seconds) == said


def test_the_loss_sentence_names_each_part_in_the_catalogues_order_and_leaves_out_what_rounds_to_nothing() -> None:
    spent = {"lost_progress": 29.0, "detect": 3.0, "restart": 9.0, "act": 0.01}
    assert parts.loss_sentence(spent) == "lost 41 GPU-s: 3 detect, 9 restart, 29 lost progress"


def test_a_place_is_named_as_far_as_it_is_known() -> None:
    assert words.where("gpu-07", 3) == "rank 3 on gpu-07"
    assert words.where("gpu-07", None, "mlx5_0:1") == "mlx5_0:1 on gpu-07"
    assert words.where("gpu-07", None) == "gpu-07"
    assert words.where("", 0) == "rank 0"
    assert words.where("", None) == "place unknown"


@pytest.mark.parametrize(
    ("seconds", "said"), [(3600.0, "hour"), (1020.0, "17 min"), (70.0, "1 min 10 s"), (50.0, "50 s"), (0.0, "0 s"), (3540.0, "59 min")]
)
def test_a_stretch_of_time_is_named_exactly(seconds: float, said: str) -> None:
    assert words.span(seconds) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "exited with 0"),
        (3, "exited with 3"),
        (-9, "killed by SIGKILL"),
        (-99, "killed by signal 99"),
        (None, "ended, how is not known"),
    ],
)
def test_an_end_is_said_by_its_status(code: int | None, said: str) -> None:
    assert words.ended(code) == said


def test_counts_read_as_words() -> None:
    assert [words.plural(n, "run") for n in (0, 1, 4, 1200)] == ["no run", "1 run", "4 runs", "1,200 runs"]
