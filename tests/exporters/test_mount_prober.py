"""Mounts that hang: the source blocks for real, only the kernel's part is replaced."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.sources.mounts import MAX_HUNG, UNKNOWN, ChildProbes, MountProber
from exporters.sources.probes import ThreadProbes, Usage

USAGE = Usage(1000, 100, 10, 5)


class Filer:
    """Probes return at once, except for mount points in `hung`, until `back` is set."""

    def __init__(self, hung: set[str]) -> None:
        self.hung = hung
        self.back = threading.Event()

    def probe(self, path: str) -> Usage:
        if path in self.hung:
            self.back.wait()
        return USAGE


@pytest.fixture
def filer() -> Iterator[Filer]:
    made = Filer({"/hung"})
    yield made
    made.back.set()


def probe_threads() -> int:
    return sum(t.name == "probe" for t in threading.enumerate())


def test_a_hung_mount_is_not_ok_its_time_grows_and_the_others_stay_fresh(filer: Filer) -> None:
    prober = MountProber(ThreadProbes(filer.probe), 0.05)
    first = prober.probe(["/a", "/hung", "/b"])
    time.sleep(0.1)
    second = prober.probe(["/a", "/hung", "/b"])
    for seen in (first, second):
        assert seen["/a"].ok and seen["/b"].ok and seen["/a"].usage == USAGE
        assert seen["/hung"].ok is False and seen["/hung"].usage is None
    assert 0.05 <= (first["/hung"].seconds or 0) < 0.14 < (second["/hung"].seconds or 0)


def test_a_hung_mount_holds_one_thread_however_often_it_is_asked(filer: Filer) -> None:
    prober = MountProber(ThreadProbes(filer.probe), 0.01)
    for _ in range(10):
        prober.probe(["/hung", "/a"])
    assert probe_threads() == 1


def test_a_mount_that_comes_back_is_ok_again(filer: Filer) -> None:
    prober = MountProber(ThreadProbes(filer.probe), 0.05)
    assert prober.probe(["/hung"])["/hung"].ok is False
    filer.back.set()
    time.sleep(0.02)
    back = prober.probe(["/hung"])["/hung"]
    assert back.ok and (back.seconds or 1) < 0.05


def test_hung_mounts_are_bounded_in_all_and_further_ones_are_unknown_not_ok(filer: Filer) -> None:
    many = [f"/hung{n}" for n in range(MAX_HUNG)]
    filer.hung = set(many)
    prober = MountProber(ThreadProbes(filer.probe), 0.05)
    seen = prober.probe([*many, "/healthy"])
    assert seen["/healthy"] == UNKNOWN
    assert probe_threads() == MAX_HUNG


def test_a_mount_that_its_owner_alone_may_ask_is_unknown_not_broken() -> None:
    def probe(path: str) -> Usage:
        raise PermissionError(13, "Permission denied", path) if path == "/mine" else OSError(116, "Stale file handle", path)

    with_errors = MountProber(ThreadProbes(probe), 1.0).probe(["/mine", "/stale"])
    assert with_errors["/mine"] == UNKNOWN
    assert with_errors["/stale"].ok is False


def test_the_child_process_answers_for_real_mounts(tmp_path: Path) -> None:
    prober = MountProber(ChildProbes(), 5.0)
    odd = tmp_path / 'with "quotes" and \n line'
    odd.mkdir()
    try:
        seen = prober.probe([str(odd), str(tmp_path / "absent")])
    finally:
        prober.close()
    s = os.statvfs(tmp_path)
    found = seen[str(odd)]
    assert found.ok and found.usage is not None
    assert (found.usage.size, found.usage.inodes) == (s.f_blocks * s.f_frsize, s.f_files)
    assert seen[str(tmp_path / "absent")].ok is False


def test_a_probing_process_that_dies_is_replaced_at_the_next_pass() -> None:
    ways = ChildProbes()
    prober = MountProber(ways, 5.0)
    try:
        assert prober.probe(["/"])["/"].ok
        assert ways.pid is not None
        os.kill(ways.pid, 9)
        time.sleep(0.05)
        seen = [prober.probe(["/"])["/"].ok for _ in range(2)]
    finally:
        prober.close()
    assert seen[-1] is True


def test_a_probing_process_that_hangs_is_a_hung_mount_and_closing_does_not_wait_for_it() -> None:
    prober = MountProber(ChildProbes([sys.executable, "-S", "-c", "import time; time.sleep(60)"]), 0.1)
    seen = prober.probe(["/"])
    began = time.monotonic()
    prober.close()
    assert seen["/"].ok is False
    assert time.monotonic() - began < 1.0


def test_the_probing_process_ends_when_the_agent_is_gone() -> None:
    agent = (
        "import os; from exporters.sources.mounts import ChildProbes as C; c = C(); c.ask('/'); c.answers(5); "
        "print(c.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", agent], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    pid = int(done.stdout)
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < end, "the child outlived its agent"
        time.sleep(0.02)
