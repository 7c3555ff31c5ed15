"""Logs of parts do not fill the disk, and their writers need not know."""

from pathlib import Path

import pytest

from surefoot import part_logs


def test_a_log_that_is_too_long_keeps_its_last_lines_and_its_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_logs, "CAP", 1000)
    monkeypatch.setattr(part_logs, "KEPT", 205)
    path = part_logs.log_path(tmp_path, "jobs")
    path.parent.mkdir()
    lines = [b"line %04d\n" % n for n in range(101)]  # of 10 bytes
    with path.open("ab", buffering=0) as out:
        out.write(b"".join(lines[:100]))
        assert not part_logs.cut(path)
        out.write(lines[100])
        assert part_logs.cut(path)
        out.write(b"after\n")
    assert path.read_bytes() == b"after\n"
    assert path.with_suffix(".log.old").read_bytes() == b"".join(lines[-20:])
    assert part_logs.last_line(path) == "after"
