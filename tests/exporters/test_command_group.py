"""A program that the agent runs is ended with all that it began."""

import os
import time
from pathlib import Path

import pytest

from exporters.sources.command import output
from exporters.sources.gpu import ascend
from exporters.sources.gpu.accelerator import NoDriver


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


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo out; echo why >&2; exit 3", "ended with 3: why"),
        ("echo only this; exit 1", "ended with 1: only this"),
        ("exit 1", "ended with 1: it said nothing"),
        ("kill -9 $$", "was ended by SIGKILL: it said nothing"),
    ],
)
def test_how_a_program_ended_is_said_with_its_last_word(tmp_path: Path, script: str, said: str) -> None:
    (tmp_path / "tool").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(OSError) as caught:
        output([os.fspath(tmp_path / "tool")], 20.0, 100)
    assert str(caught.value) == f"{tmp_path}/tool {said}"


def test_a_program_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(OSError, match=r"^scontrol-none was not found: install it here, or put its folder on the agent's PATH$"):
        output(["scontrol-none", "show"], 1.0, 100)


def test_a_tool_of_a_vendor_that_hangs_in_a_child_is_ended_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, noted = tmp_path / "npu-smi", tmp_path / "pid"
    tool.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {noted}\nwait\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    driver = ascend.load(1.0)
    assert driver is not None
    with pytest.raises(NoDriver, match="npu-smi did not end within 1 s"):
        driver.roll(renew=True, hanging=())
    child, end = int(noted.read_text(encoding="utf-8")), time.monotonic() + 5
    while _lives(child):
        assert time.monotonic() < end, "the child lives on"
        time.sleep(0.01)
