"""Secrets that Surefoot makes for itself: made once, readable by their owner alone, and never empty."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.secrets import ingest_token, own_ingest_token, secret
from pipeline.settings import IngestSettings, Settings


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep/er/secret"
    made = secret(path)
    assert len(made) >= 32
    assert secret(path) == made
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_all_that_start_together_get_the_same_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert len({secret(tmp_path / "s"), pool.submit(secret, tmp_path / "s").result()}) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b"\x7fELF\xff", b"two words", b"a\0b"])
def test_a_file_that_holds_no_secret_is_refused_since_an_empty_token_would_let_everybody_in(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ingest.token").write_bytes(content)
    with pytest.raises(OSError, match="it holds no secret: remove it, and a new one is made") as caught:
        ingest_token(Settings(state_dir=tmp_path))
    assert caught.value.filename == str(tmp_path / "ingest.token")


def test_only_ingest_makes_a_token_and_all_others_say_where_it_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no token: set ingest.token to ingest's") as caught:
        ingest_token(Settings(state_dir=tmp_path))
    assert caught.value.filename == str(tmp_path / "ingest.token") and not list(tmp_path.iterdir())
    made = own_ingest_token(Settings(state_dir=tmp_path))
    assert len(made) >= 32 and ingest_token(Settings(state_dir=tmp_path)) == made


def test_a_token_that_is_set_wins(tmp_path: Path) -> None:
    assert ingest_token(Settings(state_dir=tmp_path, ingest=IngestSettings(token="set"))) == "set"
    assert list(tmp_path.iterdir()) == []
