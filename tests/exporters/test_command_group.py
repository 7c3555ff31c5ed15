"""A program that the agent runs is ended with all that it began."""

import os
import time
from pathlib import Path

import pytest

from exporters.sources.command import output


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_wrappers_child_does_not_outlive_the_deadline(tmp_path: Path) -> None:
    wrapper, noted = tmp_path / "wrapper", tmp_path / "pid"
    wrapper.write_text(f"#!/bin/sh\nsleep 20 >&- 2>&- &\necho $! > {noted}\nwait\n", encoding="utf-8")
    wrapper.chmod(0o755)
    with pytest.raises(OSError, match="did not end within 1 s"):
        output([os.fspath(wrapper)], 1.0, 100)
    child, end = int(noted.read_text(encoding="utf-8")), time.monotonic() + 5
    while _lives(child):
        assert time.monotonic() < end, "the child lives on"
        time.sleep(0.01)
