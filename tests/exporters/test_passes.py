"""Collectors that work, fail and hang, side by side."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import pytest

from exporters.collector import Reading
from exporters.passes import HUNG, Judge, Outcome, Passes, Runner
from pipeline.catalog.metrics import DISK

DEADLINE = 0.2
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Collected:
    """A collector that does what `work` does."""

    def __init__(self, work: Callable[[], Iterable[Reading]]) -> None:
        self._work = work

    def collect(self, now: datetime) -> Iterable[Reading]:
        return self._work()


def reading(reads: int | None) -> Reading:
    return Reading(DISK, {"node": "n", "disk": "sda"}, {"disk.reads": reads})


def fails() -> Iterator[Reading]:
    yield reading(1)
    raise OSError("no such file")


class Rig:
    """Collectors and their passes, on a clock that stands still until all that can answer have answered."""

    def __init__(self, **works: Callable[[], Iterable[Reading]]) -> None:
        self.clock = 100.0
        self.runners = [Runner(name, Collected(work), lambda: self.clock) for name, work in works.items()]
        self.passes = Passes(self.runners, DEADLINE)

    def run(self, hung: str = "") -> dict[str, Outcome]:
        """A pass to its end: at once, but where `hung` does not answer, at its deadline."""
        self.passes.begin(AT, began := self.clock)
        end = time.monotonic() + 30
        while any(runner.busy for runner in self.runners if runner.name != hung):
            assert time.monotonic() < end, "a collector does not answer"
            time.sleep(0.001)
        if hung:
            assert self.passes.end(self.clock) is None
            self.clock = began + DEADLINE
        outcomes = self.passes.end(self.clock)
        assert outcomes is not None
        return {outcome.name: outcome for outcome in outcomes}


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def hangs_until(event: threading.Event) -> Callable[[], Iterable[Reading]]:
    def work() -> Iterable[Reading]:
        event.wait()
        return [reading(7)]

    return work


def test_a_failing_and_a_hanging_collector_cost_only_themselves(release: threading.Event) -> None:
    works = {"good": lambda: [reading(5)], "bad": fails, "hung": hangs_until(release), "empty": lambda: [reading(None)], "none": lambda: []}
    before = set(threading.enumerate())
    rig = Rig(**works)
    for nth in (1, 2, 3):
        seen = rig.run("hung")
        assert [[v for _, v in r.values] for r in seen["good"].readings] == [[5]] and not seen["good"].error
        assert seen["bad"].error == "OSError: no such file" and not seen["bad"].readings
        assert seen["hung"].error == HUNG and seen["hung"].seconds == pytest.approx(nth * DEADLINE), "since its pass began"
        assert seen["empty"].error == "no value could be read"
        assert not seen["none"].error, "a machine may have no such device"
    assert len(set(threading.enumerate()) - before) == len(works)


def test_a_pass_ends_as_soon_as_all_have_answered() -> None:
    rig = Rig(good=lambda: [reading(1)])
    assert not rig.run()["good"].error
    assert rig.clock == 100.0


def test_a_collector_that_comes_back_gives_new_readings(release: threading.Event) -> None:
    rig = Rig(hung=hangs_until(release))
    assert rig.run("hung")["hung"].error == HUNG
    release.set()
    while rig.runners[0].busy:
        time.sleep(0.001)
    assert not rig.run()["hung"].error


def test_a_collector_is_told_to_fail_once_per_change_and_keeps_its_last_success() -> None:
    judge = Judge("n")
    good, bad = Outcome("disk", (), 2, 0.5, ""), Outcome("disk", (), 1, 0.25, "OSError: gone")
    told = [judge.failed(outcome, at) for at, outcome in enumerate((good, bad, bad, good, bad))]
    assert told == [False, True, False, False, True]
    about = judge.reading(bad)
    assert about.values == {"agent.collect.ok": 0, "agent.collect.time": 0.25, "agent.rejected": 7, "agent.last_success": 3}
    assert about.identity == {"node": "n", "collector": "disk"}
    assert judge.reading(Outcome("other", (), 0, 0.1, "x")).values["agent.last_success"] is None
