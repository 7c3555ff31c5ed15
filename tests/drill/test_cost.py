"""What a fault cost by a training's own record, against hand calculations."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.errors import InputError
from surefoot.drill.compare import write_into
from surefoot.drill.cost import Cost, Line, cost, read_lines, table, with_default_timeout

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def steps(first: int, last: int, start: float, pace: float = 1.0) -> list[Line]:
    """Steps `first` to `last`, the first of which is done at `start`."""
    return [Line(n, at(start + pace * (n - first))) for n in range(first, last + 1)]


def test_a_fault_costs_until_the_step_that_was_due_is_done_on_all_ranks() -> None:
    """Step 9 at 9 s; hit at 9.4; back at step 5 at 30 s, so step 10, due at 10 s, is done at 35 s: 25 s on two ranks."""
    lines = steps(0, 9, 0) + steps(5, 20, 30)
    assert cost("x", lines, at(9.4), 2) == Cost("x", pytest.approx(20.6), pytest.approx(25.6), pytest.approx(50.0))


def test_a_training_that_goes_on_with_the_very_next_step_lost_only_the_pause() -> None:
    lines = steps(0, 9, 0) + steps(10, 20, 30)
    assert cost("x", lines, at(9.4), 2) == Cost("x", pytest.approx(20.6), pytest.approx(20.6), pytest.approx(40.0))


def test_a_step_that_was_under_way_and_still_done_counts_as_before_the_fault() -> None:
    lines = steps(0, 10, 0) + steps(6, 20, 30)
    found = cost("x", lines, at(9.4), 1)
    assert (found.restarted, found.lost) == (pytest.approx(20.6), pytest.approx(35 - 11))


def test_a_training_that_never_came_back_or_not_far_enough_has_no_figure() -> None:
    assert cost("x", steps(0, 9, 0), at(9.4), 2) == Cost("x", None, None, None)
    assert cost("x", steps(0, 9, 0) + steps(0, 5, 30), at(9.4), 2) == Cost("x", pytest.approx(20.6), None, None)


def test_the_default_time_out_adds_its_difference_on_every_rank_and_says_that_it_was_computed() -> None:
    (found,) = with_default_timeout(Cost("torchrun", 65.0, 70.0, 140.0), 2)
    assert (found.restarted, found.caught_up, found.lost, found.computed) == (1805.0, 1810.0, 3620.0, True)
    assert with_default_timeout(Cost("torchrun", None, None, None), 2) == [], "nothing can be added to what never ended"
    assert table([found], "hang").splitlines()[-1] == "| torchrun, default time-out (by arithmetic) | 1,805 s | 1,810 s | 3,620 |"


def test_a_peer_that_is_not_there_is_in_the_table_and_says_so() -> None:
    told = table([Cost("torchrun", None, None, None), Cost("NVRx", None, None, None, why="not installed")], "kill").splitlines()
    assert told[2:] == ["| torchrun | never | never | never |", "| NVRx | not installed |  |  |"]


def test_a_peer_that_came_back_only_when_tried_again_and_one_that_never_did_say_so() -> None:
    never = Cost("torchrun", None, None, None, why="not back after 224 s", missed=2)
    again, in_vain = table([Cost("torchrun", 1.0, 2.0, 3.0, missed=1), never], "hang").splitlines()[2:]
    assert again == "| torchrun (at the second try) | 1.0 s | 2.0 s | 3.0 |"
    assert in_vain == "| torchrun | not back after 224 s, in 3 tries |  |  |"


def test_lines_are_read_in_order_of_time_and_one_that_was_cut_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    texts = [json.dumps({"step": n, "loss": 1.0, "at": at(t).isoformat()}) for n, t in ((1, 2.0), (0, 1.0))]
    path.write_text("\n".join([*texts, texts[0][:20]]))
    assert read_lines(path) == [Line(0, at(1)), Line(1, at(2))]


def test_a_table_replaces_the_one_between_its_marks_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("a\n<!-- surefoot drill kill --compare torchrun -->\nold\n<!-- end of table -->\nb\n")
    write_into(path, "kill", "| new |")
    write_into(path, "kill", "| newer |")
    assert path.read_text() == "a\n<!-- surefoot drill kill --compare torchrun -->\n\n| newer |\n\n<!-- end of table -->\nb\n"
    with pytest.raises(InputError, match="hang --compare"):
        write_into(path, "hang", "")
