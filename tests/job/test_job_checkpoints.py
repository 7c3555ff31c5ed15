"""The newest *verified* checkpoint wins, whatever a pointer file says."""

import json
from pathlib import Path

import pytest

from exporters.job import checkpoints
from surefoot.hook.layout import MARK_NAME


def newest_verified(root: Path) -> Path | None:
    mark = checkpoints.newest_verified(root)
    return mark and mark.folder


def checkpoint(folder: Path, step: object, files: object = None, version: int = 1) -> Path:
    folder.mkdir(parents=True)
    (folder / "shards").mkdir()
    (folder / "a.pt").write_bytes(b"1234567")
    (folder / "shards" / "b.pt").write_bytes(b"12")
    given = {"a.pt": 7, "shards/b.pt": 2} if files is None else files
    (folder / MARK_NAME).write_text(json.dumps({"version": version, "step": step, "files": given}))
    return folder


def test_the_highest_step_wins_not_the_name_the_time_or_a_pointer(tmp_path: Path) -> None:
    checkpoint(tmp_path / "z-9", 9)
    wanted = checkpoint(tmp_path / "a-100", 100)
    checkpoint(tmp_path / "b-20", 20)
    (tmp_path / "LATEST").write_text("b-20")
    (tmp_path / "latest").symlink_to("b-20")
    assert newest_verified(tmp_path) == wanted


@pytest.mark.parametrize(
    "files",
    [{"a.pt": 8}, {"a.pt": 7, "c.pt": 1}, {}, {"a.pt": "7"}, ["a.pt"], {"../old/a.pt": 7}, {"/etc/hostname": 1}, {"shards": 4096}],
    ids=["size", "missing", "none", "text", "list", "outside", "absolute", "folder"],
)
def test_one_that_is_not_whole_is_passed_over(tmp_path: Path, files: object) -> None:
    wanted = checkpoint(tmp_path / "old", 1)
    checkpoint(tmp_path / "new", 2, files)
    assert newest_verified(tmp_path) == wanted


def test_without_a_mark_with_a_broken_one_or_with_another_version_it_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "no-mark").mkdir()
    (tmp_path / "no-mark" / "a.pt").write_bytes(b"1")
    torn = checkpoint(tmp_path / "torn", 5)
    (torn / MARK_NAME).write_text('{"version": 1, "step": 5, "fil')
    checkpoint(tmp_path / "later", 6, version=2)
    checkpoint(tmp_path / "texts", "7")
    assert newest_verified(tmp_path) is None


def test_a_root_that_is_itself_a_checkpoint_or_does_not_exist(tmp_path: Path) -> None:
    assert newest_verified(tmp_path / "none") is None
    own = checkpoint(tmp_path / "own", 3)
    assert newest_verified(own) == own


def test_a_checkpoint_some_folders_down_is_found(tmp_path: Path) -> None:
    wanted = checkpoint(tmp_path / "exp" / "seed1" / "step5", 5)
    assert newest_verified(tmp_path) == wanted
