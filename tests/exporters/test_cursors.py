"""Cursors over a restart: nothing that was not delivered is skipped."""

from io import StringIO
from pathlib import Path

import pytest

from exporters.cursors import Cursors
from exporters.sending.dry import DryRun


def test_only_what_is_settled_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    cursors = Cursors(path)
    cursors.mark(5, {"a": 1})
    cursors.mark(9, {"a": 4})
    cursors.settle(4)
    assert Cursors(path).load() == {}
    cursors.settle(8)
    assert Cursors(path).load() == {"a": 1}
    cursors.settle(9)
    assert Cursors(path).load() == {"a": 4}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": -1, "b": "x", "c": 1.5, "d": true}', "\x00"])
def test_an_unusable_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    assert Cursors(tmp_path / "c.json").load() == {}


def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cursors = Cursors(tmp_path / "absent" / "c.json")
    for n in range(3):
        cursors.mark(n, {"a": n})
        cursors.settle(n)
    assert len(caplog.records) == 1


def test_marks_are_bounded_while_nothing_is_settled_and_catch_up_afterwards(tmp_path: Path) -> None:
    cursors = Cursors(tmp_path / "c.json")
    for n in range(1, 1000):
        cursors.mark(n, {"a": n})
    cursors.settle(1000)
    cursors.mark(1001, {"a": 1000})
    cursors.settle(1001)
    assert Cursors(tmp_path / "c.json").load() == {"a": 1000}


def test_a_rehearsal_keeps_no_cursor(tmp_path: Path) -> None:
    """Else the agent that is run next would believe that what was only printed is delivered."""
    dry = DryRun(StringIO())
    cursors = Cursors(tmp_path / "c.json")
    for records in (1, 2):
        cursors.mark(dry.queued, {"ring": records})
        cursors.settle(dry.settled)
    assert list(tmp_path.iterdir()) == []
