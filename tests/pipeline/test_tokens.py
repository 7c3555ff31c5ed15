"""Tokens of inserts that a kill cut short: forgotten, and on disk before anybody opens the database."""

import os
from pathlib import Path

import pytest

from pipeline.embedded.tokens import forget_cut_short


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three tokens: of a part that is there, of one that was merged into it, and of one whose rows never came."""
    table = tmp_path / "store/abc/abcdef"
    (table / "202611_1_4_1").mkdir(parents=True)
    logs = table / "deduplication_logs"
    logs.mkdir()
    path = logs / "deduplication_log_1.txt"
    path.write_bytes(b"1\t202611_1_1_0\tid1\n1\t202611_2_2_0\tid2\n1\t202611_5_5_0\tid5\n2\t202611_5_5_0\tid5\n")
    return path


def test_only_the_token_whose_rows_are_nowhere_is_forgotten(tmp_path: Path, log: Path) -> None:
    assert forget_cut_short(tmp_path) == 1
    assert log.read_bytes() == b"1\t202611_1_1_0\tid1\n1\t202611_2_2_0\tid2\n2\t202611_5_5_0\tid5\n"
    assert forget_cut_short(tmp_path) == 0


def test_what_is_forgotten_stays_so_after_a_power_cut(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is on disk before it takes the old one's name, and the name after."""
    before, synced = log.read_bytes(), []

    def fsync(fd: int) -> None:
        synced.append((Path(os.readlink(f"/proc/self/fd/{fd}")), log.read_bytes() == before))

    monkeypatch.setattr(os, "fsync", fsync)
    forget_cut_short(tmp_path)
    assert synced == [(log.with_suffix(".new"), True), (log.parent, False)]
