"""The completeness mark: whole, last, and true."""

import json
import os
from pathlib import Path
from typing import Any

from surefoot import StepMonitor
from surefoot.hook import checkpoint
from surefoot.hook.layout import MARK_NAME


def saved(root: Path) -> Path:
    folder = root / "step-40"
    (folder / "shards").mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"x" * 1000)
    (folder / "shards" / "rank-0.pt").write_bytes(b"y" * 10)
    (folder / "empty").touch()
    return folder


def test_the_mark_names_every_file_with_its_size(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    assert checkpoint.complete(folder, 40) == 1010
    mark = json.loads((folder / MARK_NAME).read_text())
    assert mark == {"version": 1, "step": 40, "files": {"empty": 0, "model.pt": 1000, "shards/rank-0.pt": 10}}
    assert sorted(os.listdir(folder)) == sorted([MARK_NAME, "empty", "model.pt", "shards"])


def test_marking_again_describes_what_is_there_now_and_not_the_mark(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    checkpoint.complete(folder, 40)
    (folder / "model.pt").write_bytes(b"x" * 7)
    assert checkpoint.complete(folder, 41) == 17
    mark = json.loads((folder / MARK_NAME).read_text())
    assert (mark["step"], mark["files"]["model.pt"]) == (41, 7) and MARK_NAME not in mark["files"]


def test_the_monitor_marks_and_records_a_checkpoint(rings: Any, tmp_path: Path) -> None:
    folder = saved(tmp_path)
    assert StepMonitor().checkpoint_complete(folder, 40) is True
    (record,) = rings.records()
    assert (record["kind"], record["step"], record["bytes"], record["path"]) == ("checkpoint", 40, 1010, str(folder))


def test_a_checkpoint_is_marked_even_where_nothing_is_recorded(rings: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("SUREFOOT_ATTEMPT_ID")
    folder = saved(tmp_path)
    assert StepMonitor().checkpoint_complete(str(folder), 40) is True
    assert (folder / MARK_NAME).exists()


def test_a_folder_that_is_not_there_gets_no_mark_and_a_path_too_long_is_cut(rings: Any, tmp_path: Path) -> None:
    monitor = StepMonitor()
    assert monitor.checkpoint_complete(tmp_path / "none", 1) is False
    assert monitor.errors == 1 and rings.records() == []
    deep = tmp_path / ("d" * 150) / ("e" * 150)
    deep.mkdir(parents=True)
    assert monitor.checkpoint_complete(deep, 2) is True
    (record,) = rings.records()
    assert str(deep).startswith(record["path"]) and len(record["path"]) == 192
