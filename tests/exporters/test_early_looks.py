"""Looks before their time: a collector that knows that something has changed is not kept waiting for its turn."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from exporters.collector import Observation, Site
from exporters.passes import Runner, Schedule
from exporters.sources.storage.mount_changes import MountChanges
from exporters.sources.storage.probes import Usage
from exporters.storage.mounts import MountCollector

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
MOUNTS = """
import subprocess, sys
from pathlib import Path
from exporters.sources.storage.mount_changes import MountChanges
changes = MountChanges(Path("/proc"))
for words in ("true", "mount -t tmpfs x", "mount -o remount,ro", "true", "umount"):
    subprocess.run([*words.split(), sys.argv[1]], check=True)
    print(changes.seen(), changes.seen())
changes.close()
print(changes.seen())
"""


class Stirred:
    """Notes when it is asked to look, and is stirred when told."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self.looks, self.now = clock, list[float](), False

    def collect(self, now: datetime) -> Iterable[Observation]:
        self.looks.append(self._clock())
        return []

    def stirred(self) -> bool:
        return self.now


def test_a_collector_that_is_stirred_looks_at_once_then_every_second_and_its_own_pace_stays() -> None:
    clock = [100.0]
    mine = Stirred(lambda: clock[0])
    runner = Runner("mine", lambda: mine, 10.0, 5.0, lambda: clock[0])
    schedule = Schedule([runner], "n")

    def until(end: float) -> None:
        while clock[0] < end:
            schedule.turn(AT, clock[0])
            while runner.busy:
                os.sched_yield()
            clock[0] = round(clock[0] + 0.25, 2)

    until(130.0)
    paced = mine.looks[1:]
    assert len(paced) == 3 and [b - a for a, b in pairwise(paced)] == pytest.approx([10.0, 10.0], abs=0.25)
    mine.looks.clear()
    mine.now = True
    until(133.0)
    assert mine.looks == [130.0, 131.0, 132.0]
    mine.now = False
    mine.looks.clear()
    until(150.0)
    assert mine.looks == pytest.approx([paced[-1] + 10.0, paced[-1] + 20.0], abs=0.25)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_the_kernel_tells_of_a_mount_a_remount_and_an_unmount_once_each(tmp_path: Path) -> None:
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", MOUNTS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(f"may not mount here: {done.stderr}")
    assert done.stdout.split("\n") == ["False False", "True False", "True False", "False False", "True False", "False", ""], done.stderr


def test_a_saved_list_of_mounts_never_changes_and_none_at_all_neither(proc: Path, tmp_path: Path) -> None:
    for one in (proc, tmp_path):
        changes = MountChanges(one)
        assert not changes.seen()
        changes.close()


def test_a_mount_that_does_not_answer_is_looked_at_again_at_once_and_then_in_its_time(make_site: Callable[..., Site]) -> None:
    answers = [True, False, False, True]

    def ask(path: str) -> Usage:
        if path == "/mnt/big data" and not answers[0]:
            raise OSError(5, "Input/output error")
        return Usage(1, 1, 1, 1)

    collector = MountCollector(make_site(ask))
    wanted = []
    while answers:
        list(collector.collect(AT))
        wanted.append(collector.stirred())
        answers.pop(0)
    collector.close()
    assert wanted == [False, True, False, False]
