"""Collectors that work, fail and hang, side by side."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import pytest

from exporters.collector import Observation, Reading
from exporters.judge import Judge
from exporters.passes import HUNG, Outcome, Runner, Schedule, close
from pipeline.catalog.events import OOM_KILL
from pipeline.catalog.metrics import DISK
from pipeline.records import Event

DEADLINE = 0.2
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Collected:
    """A collector that does what `work` does, and has come as far as `kept` says."""

    def __init__(self, work: Callable[[], Iterable[Observation]], kept: int = 0) -> None:
        self._work = work
        self._kept = kept

    def collect(self, now: datetime) -> Iterable[Observation]:
        return self._work()

    def kept(self) -> dict[str, int]:
        return {"log": self._kept}


def reading(reads: int | None) -> Reading:
    return Reading(DISK, {"node": "n", "disk": "sda"}, {"disk.reads": reads})


def event(name: str) -> Event:
    return Event(id=name, at=AT, kind=OOM_KILL.name, layer="kernel", severity="critical")


def fails() -> Iterator[Observation]:
    yield reading(1)
    yield event("before")
    raise OSError("no such file")


class Rig:
    """Collectors and their schedule, on a clock that stands still until all that can answer have answered."""

    def __init__(self, every: float = 1.0, **works: Callable[[], Iterable[Observation]]) -> None:
        self.clock = 100.0
        self.runners = [Runner(name, partial(Collected, work, 7), every, DEADLINE, lambda: self.clock) for name, work in works.items()]
        self.schedule = Schedule(self.runners, "n")

    def answered(self, hung: str = "") -> None:
        end = time.monotonic() + 30
        while any(runner.busy for runner in self.runners if runner.name != hung):
            assert time.monotonic() < end, "a collector does not answer"
            time.sleep(0.001)

    def turn(self, seconds: float = 0.0) -> dict[str, Outcome]:
        self.clock += seconds
        return {outcome.name: outcome for outcome in self.schedule.turn(AT, self.clock)}

    def run(self, hung: str = "") -> dict[str, Outcome]:
        """A pass to its end, two seconds after the one before: at once, but where `hung` does not answer, at its deadline."""
        self.turn(2.0)
        self.answered(hung)
        seen = self.turn()
        if hung:
            assert hung not in seen
            seen |= self.turn(DEADLINE)
        return seen


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def hangs_until(come: threading.Event) -> Callable[[], Iterable[Observation]]:
    def work() -> Iterable[Observation]:
        come.wait()
        return [reading(7), event("late")]

    return work


def test_a_failing_and_a_hanging_collector_cost_only_themselves(release: threading.Event) -> None:
    works = {"good": lambda: [reading(5)], "bad": fails, "hung": hangs_until(release), "empty": lambda: [reading(None)], "none": lambda: []}
    before = set(threading.enumerate())
    rig = Rig(**works)
    hung_for = iter((DEADLINE, 2.0 + 2 * DEADLINE, 4.0 + 3 * DEADLINE))
    for _ in range(3):
        seen = rig.run("hung")
        assert [[v for _, v in r.values] for r in seen["good"].readings] == [[5]] and not seen["good"].error
        assert seen["bad"].error == "no such file" and not seen["bad"].readings
        assert [e.id for e in seen["bad"].events] == ["before"], "what has happened has happened"
        assert seen["hung"].error == HUNG and seen["hung"].seconds == pytest.approx(next(hung_for)), "since its pass began"
        assert seen["empty"].error == "no value could be read"
        assert not seen["none"].error, "a machine may have no such device"
    assert len(set(threading.enumerate()) - before) == len(works)


def test_a_collector_that_comes_back_gives_new_readings_and_the_old_events(release: threading.Event) -> None:
    rig = Rig(hung=hangs_until(release))
    assert rig.run("hung")["hung"].error == HUNG
    release.set()
    rig.answered()
    late = rig.turn()["hung"]
    assert (late.readings, [e.id for e in late.events], late.error) == ((), ["late"], HUNG)
    fresh = rig.run()["hung"]
    assert fresh.readings and not fresh.error and fresh.kept == {"log": 7}


def test_each_collector_keeps_its_own_pace_from_a_moment_of_its_own() -> None:
    begun: dict[str, list[float]] = {}
    rig = Rig(10.0, **{name: (lambda name=name: begun.setdefault(name, []).append(rig.clock) or []) for name in "abcdefgh"})
    for _ in range(400):
        rig.turn(0.1)
        rig.answered()
    assert [times[0] for times in begun.values()] == pytest.approx([100.1] * 8), "the first pass of all is at once"
    gaps = {name: [b - a for a, b in pairwise(times)] for name, times in begun.items()}
    assert all(5.0 <= first <= 10.2 and rest == pytest.approx([10.0] * len(rest), abs=0.2) for first, *rest in gaps.values())
    assert len({round(times[1], 1) for times in begun.values()}) >= 5, "they do not all work at the same moment"


def test_a_collector_is_told_to_fail_once_per_change_and_keeps_its_last_success() -> None:
    judge = Judge("n")
    good, bad = Outcome("disk", (), 2, 0.5, ""), Outcome("disk", (), 1, 0.25, "OSError: gone")
    told = [judge.failed(outcome, at) for at, outcome in enumerate((good, bad, bad, good, bad))]
    assert told == [False, True, False, False, True]
    (about,) = judge.readings(9.0)
    expected = {"agent.collect.ok": 0, "agent.collect.time": 0.25, "agent.rejected": 7, "agent.last_success": 3}
    assert about.values == expected | {"agent.age": 6.0, "agent.absent": 0}, "it is nine o'clock, as it were"
    assert about.identity == {"node": "n", "collector": "disk"}
    judge.failed(Outcome("other", (), 0, 0.1, "x"), 9)
    assert [about.values["agent.last_success"] for about in judge.readings(9.0)] == [3, None]


class Absent(Collected):
    """A collector of something that is not on this machine."""

    def absent(self) -> str:
        return "no NVIDIA driver\x00"


def test_what_is_absent_is_told_only_where_nothing_was_read() -> None:
    outcomes = {}
    for name, work in {"none": lambda: [], "some": lambda: [reading(1)], "bad": fails}.items():
        runner = Runner(name, partial(Absent, work), 1.0, DEADLINE)
        runner.begin(AT)
        end = time.monotonic() + 30
        while runner.busy and time.monotonic() < end:
            time.sleep(0.005)
        outcomes[name] = runner.take()
    told = {name: outcome.absent for name, outcome in outcomes.items() if outcome}
    assert told == {
        "none": "no NVIDIA driver\\x00",
        "some": "",
        "bad": "",
    }
    judge = Judge("n")
    for outcome in outcomes.values():
        assert outcome is not None
        judge.failed(outcome, 5.0)
    absent = {about.identity["collector"]: about.values["agent.absent"] for about in judge.readings(6.0)}
    assert absent == {"none": 1, "some": 0, "bad": 0}


class Broken(Collected):
    """A collector that says neither how far it has come nor whether it is stirred."""

    def kept(self) -> dict[str, int]:
        raise RuntimeError("forgotten")

    def stirred(self) -> bool:
        raise RuntimeError("not known")


def test_one_that_cannot_be_made_or_say_how_far_it_came_fails_alone_and_is_made_again_later() -> None:
    clock = [100.0]
    tries = []

    def make() -> Collected:
        tries.append(clock[0])
        if len(tries) == 1:
            raise KeyError("no driver")
        return Collected(lambda: [reading(3)])

    runners = [
        Runner("late", make, 1.0, DEADLINE, lambda: clock[0]),
        Runner("broken", lambda: Broken(lambda: [reading(4), event("seen")]), 1.0, DEADLINE, lambda: clock[0]),
    ]
    schedule = Schedule(runners, "n")

    def one() -> dict[str, Outcome]:
        clock[0] += 2.0
        schedule.turn(AT, clock[0])
        end = time.monotonic() + 30
        while any(runner.busy for runner in runners):
            assert time.monotonic() < end
            time.sleep(0.001)
        return {outcome.name: outcome for outcome in schedule.turn(AT, clock[0])}

    first, second = one(), one()
    assert first["late"].error == "KeyError: 'no driver'" and not second["late"].error and second["late"].readings
    assert len(tries) == 2, "one that was made is made once"
    for seen in (first, second):
        assert seen["broken"].error == "RuntimeError: forgotten" and [e.id for e in seen["broken"].events] == ["seen"]


class Closed(Collected):
    """A collector that holds something; it says in which thread it gave it back."""

    def __init__(self, work: Callable[[], Iterable[Observation]], kept: int, told: list[str]) -> None:
        super().__init__(work, kept)
        self._told = told

    def close(self) -> None:
        self._told.append(threading.current_thread().name)
        raise OSError("it was gone already")


def test_a_collector_gives_back_what_it_holds_after_its_last_pass_and_one_that_hangs_is_not_waited_for() -> None:
    told: list[str] = []
    back = threading.Event()

    def hangs() -> Iterable[Observation]:
        back.wait()
        return [reading(1)]

    works = {"a": lambda: [reading(1)], "hung": hangs, "b": lambda: [reading(2)]}
    runners = [Runner(name, partial(Closed, work, 7, told), 1.0, DEADLINE) for name, work in works.items()]
    runners.append(Runner("never", partial(Closed, hangs, 7, told), 1.0, DEADLINE))
    for runner in runners[:3]:
        runner.begin(AT)
    end = time.monotonic() + 30
    while sum(runner.busy for runner in runners) > 1 and time.monotonic() < end:
        time.sleep(0.005)
    close(runners, 30.0)
    assert time.monotonic() < end
    assert sorted(told) == ["collector-a", "collector-b"], "each in its own thread, and one that was never made has nothing"
    back.set()
    while len(told) < 3 and time.monotonic() < end:
        time.sleep(0.005)
    assert sorted(told) == ["collector-a", "collector-b", "collector-hung"]
