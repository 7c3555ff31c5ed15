"""Mounts that hang: the source blocks for real, only the kernel's part is replaced."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exporters.sources.storage.mounts import MAX_HUNG, UNKNOWN, ChildProbes, Prober, usages
from exporters.sources.storage.probes import Answer, ThreadProbes, Usage

USAGE = Usage(1000, 100, 10, 5)
TIMEOUT = 0.05


class Filer:
    """Probes return at once, except for mount points in `hung`, until `back` is set."""

    def __init__(self, hung: set[str]) -> None:
        self.hung = hung
        self.back = threading.Event()

    def probe(self, path: str) -> Usage:
        if path in self.hung:
            self.back.wait()
        return USAGE

    def prober(self) -> Prober[Usage]:
        """A prober of its mounts, with a clock that stands still while anything but a hung mount is waited for."""
        ways = Patient(self)
        return Prober(ways, TIMEOUT, lambda: ways.clock)


class Patient(ThreadProbes[Usage]):
    """Probes in threads. Waits for those that will answer however long the machine takes; for the others the clock goes on at once."""

    def __init__(self, filer: Filer) -> None:
        super().__init__(filer.probe)
        self.clock = 100.0
        self._filer = filer
        self._asked: set[str] = set()

    def ask(self, path: str) -> None:
        self._asked.add(path)
        super().ask(path)

    def answers(self, timeout: float) -> list[Answer[Usage]]:
        if timeout and self._asked <= self._filer.hung:
            self.clock += timeout
            return []
        found = super().answers(30.0 if timeout else 0.0)
        self._asked -= {answer.path for answer in found}
        return found


@pytest.fixture
def filer() -> Iterator[Filer]:
    made = Filer({"/hung"})
    yield made
    made.back.set()


def probe_threads() -> int:
    return sum(t.name == "probe" for t in threading.enumerate())


@pytest.fixture(autouse=True)
def _no_probe_of_another_test_is_under_way() -> None:
    assert until(lambda: probe_threads() == 0)


def until(true: Callable[[], bool]) -> bool:
    """Whether it comes true."""
    end = time.monotonic() + 30
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.005)
    return found


def test_a_hung_mount_is_not_ok_its_time_grows_and_the_others_stay_fresh(filer: Filer) -> None:
    prober = filer.prober()
    first = prober.probe(["/a", "/hung", "/b"])
    prober._ways.clock += 1.0
    second = prober.probe(["/a", "/hung", "/b"])
    for seen in (first, second):
        assert seen["/a"].ok and seen["/b"].ok and seen["/a"].found == USAGE
        assert seen["/hung"].ok is False and seen["/hung"].found is None
    assert first["/hung"].seconds == pytest.approx(TIMEOUT)
    assert second["/hung"].seconds == pytest.approx(TIMEOUT + 1.0), "it was not asked again: nobody waits for it any more"


# C25
def test_a_hung_mount_holds_one_thread_however_often_it_is_asked(filer: Filer) -> None:
    prober = filer.prober()
    for _ in range(10):
        prober.probe(["/hung", "/a"])
    assert until(lambda: probe_threads() == 1)


def test_a_mount_that_comes_back_is_ok_again(filer: Filer) -> None:
    prober = filer.prober()
    assert prober.probe(["/hung"])["/hung"].ok is False
    filer.back.set()
    assert until(lambda: probe_threads() == 0)
    filer.hung = set()
    assert prober.probe(["/hung"])["/hung"].ok


class Suspended(Patient):
    """As on a machine that is suspended while its mounts answer: for the prober that was the whole time-out and more."""

    def answers(self, timeout: float) -> list[Answer[Usage]]:
        if timeout and self.clock == 100.0:
            assert until(lambda: probe_threads() == 0)
            self.clock += 3600.0
            return []
        return super().answers(timeout)


def test_answers_that_came_while_the_agent_itself_stood_still_count(filer: Filer) -> None:
    ways = Suspended(filer)
    seen = Prober(ways, TIMEOUT, lambda: ways.clock).probe(["/a", "/b"])
    assert seen["/a"].ok and seen["/b"].ok


def test_hung_mounts_are_bounded_in_all_and_further_ones_are_unknown_not_ok(filer: Filer) -> None:
    many = [f"/hung{n}" for n in range(MAX_HUNG)]
    filer.hung = set(many)
    prober = filer.prober()
    seen = prober.probe([*many, "/healthy"])
    assert seen["/healthy"] == UNKNOWN
    assert probe_threads() == MAX_HUNG


def test_a_mount_that_its_owner_alone_may_ask_is_unknown_not_broken() -> None:
    def probe(path: str) -> Usage:
        raise PermissionError(13, "Permission denied", path) if path == "/mine" else OSError(116, "Stale file handle", path)

    with_errors = Prober(ThreadProbes(probe), 30.0).probe(["/mine", "/stale"])
    assert with_errors["/mine"] == UNKNOWN
    assert with_errors["/stale"].ok is False


def test_the_child_process_answers_for_real_mounts(tmp_path: Path) -> None:
    prober = Prober(usages(), 30.0)
    odd = tmp_path / 'with "quotes" and \n line'
    odd.mkdir()
    try:
        seen = prober.probe([str(odd), str(tmp_path / "absent")])
    finally:
        prober.close()
    s = os.statvfs(tmp_path)
    found = seen[str(odd)]
    assert found.ok and found.found is not None
    assert (found.found.size, found.found.inodes) == (s.f_blocks * s.f_frsize, s.f_files)
    assert seen[str(tmp_path / "absent")].ok is False


def test_a_probing_process_that_dies_is_replaced_at_the_next_pass() -> None:
    ways = usages()
    prober = Prober(ways, 30.0)
    try:
        assert prober.probe(["/"])["/"].ok
        assert ways.pid is not None
        os.kill(ways.pid, 9)
        os.waitid(os.P_PID, ways.pid, os.WEXITED | os.WNOWAIT)
        seen = [prober.probe(["/"])["/"].ok for _ in range(2)]
    finally:
        prober.close()
    assert seen[-1] is True


def test_a_probing_process_that_hangs_is_a_hung_mount_and_closing_does_not_wait_for_it() -> None:
    prober = Prober(ChildProbes([sys.executable, "-S", "-c", "import time; time.sleep(60)"], Usage), 0.1)
    seen = prober.probe(["/"])
    began = time.monotonic()
    prober.close()
    assert seen["/"].ok is False
    assert time.monotonic() - began < 30


def test_the_probing_process_ends_when_the_agent_is_gone() -> None:
    agent = (
        "import os; from exporters.sources.storage.mounts import usages; c = usages(); c.ask('/'); c.answers(30); "
        "print(c.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", agent], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    pid = int(done.stdout)
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < end, "the child outlived its agent"
        time.sleep(0.02)


def test_no_thread_is_left_where_one_that_had_answered_took_the_question_of_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    probes = ThreadProbes(lambda path: release.wait(30))
    probes.ask("/a")
    held: list[threading.Thread] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: held.append(thread))
        probes.ask("/b")
    release.set()
    assert until(lambda: probe_threads() == 0)
    assert sorted(answer.path for answer in probes.answers(10.0)) == ["/a", "/b"]
    (late,) = held
    late.start()
    assert until(lambda: probe_threads() == 0)
    probes.ask("/c")
    assert [answer.path for answer in probes.answers(10.0)] == ["/c"]


def test_a_thread_that_has_answered_is_used_again_and_one_that_hangs_is_not_waited_for() -> None:
    release = threading.Event()

    def probe(path: str) -> tuple[int, str]:
        if path == "/hung":
            release.wait(30)
        return (threading.get_ident(), path)

    probes = ThreadProbes(probe, 5.0)
    threads = set()
    for path in ("/a", "/b", "/c"):
        probes.ask(path)
        (answer,) = probes.answers(10.0)
        assert answer.found and answer.found[1] == path
        threads.add(answer.found[0])
    assert len(threads) == 1
    probes.ask("/hung")
    probes.ask("/d")
    (answer,) = probes.answers(10.0)
    assert answer.found and answer.found[1] == "/d"
    release.set()
    (hung,) = probes.answers(10.0)
    assert hung.found and hung.path == "/hung"
    assert len(threads | {answer.found[0], hung.found[0]}) == 2  # either may have got either question
