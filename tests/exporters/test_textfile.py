"""The page as a file for node_exporter's textfile collector."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from exporters import textfile
from exporters.textfile import NAME, TextFile, write


def test_the_file_is_replaced_whole_can_be_read_by_others_and_nothing_else_is_left(tmp_path: Path) -> None:
    assert write(tmp_path, "a 1\n")
    with (tmp_path / NAME).open() as reader:  # a scrape that began before
        assert write(tmp_path, 'b{l="\udcff"} 2\n' * 1000)
        assert reader.read() == "a 1\n"
    assert os.listdir(tmp_path) == ["surefoot.prom"]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o644


def test_a_file_that_cannot_be_renewed_goes_rather_than_stay_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write(tmp_path, "a 1\n")
    (tmp_path / f".{NAME}.{os.getpid()}").mkdir()  # as a full disk: it cannot be written
    assert not write(tmp_path, "a 2\n")
    assert not (tmp_path / NAME).exists()
    assert not write(tmp_path / "none", "a 1\n")


def test_an_empty_page_leaves_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, "a 1\n")
    assert not write(tmp_path, "")
    assert os.listdir(tmp_path) == []


def test_the_newest_text_is_written_and_gone_after_close(tmp_path: Path) -> None:
    file = TextFile(tmp_path)
    for n in range(50):
        file.put(f"a {n}\n")
    end = time.monotonic() + 30
    while not (tmp_path / NAME).exists() or (tmp_path / NAME).read_text() != "a 49\n":
        assert time.monotonic() < end
        time.sleep(0.005)
    file.close(30.0)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_hangs_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back = threading.Event()
    monkeypatch.setattr(textfile, "write", lambda folder, text: back.wait(60))
    file = TextFile(tmp_path)
    threads = threading.active_count()
    for n in range(100):
        file.put(f"a {n}\n")
    file.close(0.01)
    assert threading.active_count() <= threads
    back.set()
    file.close(30.0)
