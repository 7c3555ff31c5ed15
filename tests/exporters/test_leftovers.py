"""What a sender could not deliver reaches ingest with the next one, once."""

import os
from pathlib import Path

import pytest

from exporters.sending.leftovers import LIMIT, MOST, leave, left


def test_what_was_left_is_found_oldest_first_and_forgotten_once_delivered(tmp_path: Path) -> None:
    folder = tmp_path / "undelivered"
    assert list(left(folder)) == []
    for n, batch in enumerate(["b", "a"]):
        assert leave(folder, batch, batch.encode())
        os.utime(folder / f"{batch}.otlp", (n, n))
    found = list(left(folder))
    assert [(one.batch, one.body) for one in found] == [("b", b"b"), ("a", b"a")]
    for one in found:
        one.forget()
        one.forget()
    assert os.listdir(folder) == []
    assert folder.stat().st_mode & 0o7777 == 0o1777


def test_nothing_is_left_where_that_would_be_too_much_or_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not leave(tmp_path / "u", "a", b"x" * (LIMIT + 1))
    monkeypatch.setattr("exporters.sending.leftovers.MOST", 2)
    assert [leave(tmp_path / "u", name, b"") for name in "abc"] == [True, True, False]
    assert not leave(tmp_path / "no" / "such", "a", b"")
    assert MOST >= 100


def test_links_pipes_large_files_and_other_users_files_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "l.otlp").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "p.otlp")
    with (tmp_path / "large.otlp").open("wb") as f:
        f.truncate(LIMIT + 1)
    (tmp_path / ".half.123").write_bytes(b"")
    assert leave(tmp_path, "good", b"x")
    assert [one.batch for one in left(tmp_path)] == ["good"]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert list(left(tmp_path)) == []


@pytest.mark.parametrize("name", ["\u2603", "a\nb", "x" * 65, "", "a b", ".hidden"])
def test_a_file_named_as_no_batch_is_passed_over_so_that_nobody_can_stop_the_others(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.otlp").write_bytes(b"stray")
    (tmp_path / "good.otlp").write_bytes(b"x")
    assert [(one.batch, one.body) for one in left(tmp_path)] == [("good", b"x")]
