"""/proc/PID/stat, also of programs with odd names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sources import process
from exporters.sources.process import Process

# fields 3 to 22 of proc(5): state ppid … utime(14) stime(15) … starttime(22)
REST = b"S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 987654 0 0"


@pytest.mark.parametrize("name", [b"python", b"a b", b"x) R 9", b"((", b")", b"\xff\n"])
def test_state_times_and_start_are_found_whatever_the_program_is_called(name: bytes) -> None:
    assert process.parse(b"42 (" + name + b") " + REST, 100.0) == Process("S", 3.0, 987654)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_process_or_none(stat: bytes) -> None:
    assert isinstance(process.parse(stat, 100.0), Process | None)


def test_this_very_process_runs_and_has_used_cpu() -> None:
    found = process.read(Path("/proc"), os.getpid(), os.sysconf("SC_CLK_TCK"))
    assert found is not None and found.state == "R"
    assert abs(found.cpu_seconds - time_used()) < 0.5
    assert os.geteuid() in process.owners(Path("/proc"), os.getpid())


def time_used() -> float:
    times = os.times()
    return times.user + times.system


def test_a_process_that_ended_is_none_and_has_no_owner() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert process.read(Path("/proc"), child.pid, 100.0) is None
    assert process.owners(Path("/proc"), child.pid) == frozenset()
