"""kill -9 of the leader at every one of its writes, just before it and just after it: the rows that remain are the same."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

MOST_WRITES = 40


def drill(world: Any, leader: Any) -> None:
    """A rank is killed; the run comes back. The leader ticks all along, and is started again whenever it died."""
    world.leaders_store = leader

    def ticks() -> None:
        while not _survived(world):
            world.restart_jobs()

    world.beat(state="starting", attempt="")
    ticks()
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.wait(20)
    world.steps(60)
    world.beat()
    world.live(1, step=61, completed=60, phase="forward", since=world.now)
    ticks()
    world.exits(1, "-9")
    ticks()
    incident = world.incidents()[-1].incident
    world.asks(f"i-{world.name}", "acknowledge", incident)
    ticks()
    world.answers(world.actions()[-1].action, "accepted")
    world.attempt("stopping")
    world.attempt("ended", exit_code=1)
    ticks()
    world.answers(world.actions()[-1].action, "done")
    world.attempt("starting", launch=2)
    world.attempt("running", launch=2)
    ticks()
    world.steps(12, first=51, launch=2)
    ticks()
    world.wait(2)
    ticks()
    world.run("finished", exit_code=0)
    ticks()


def _survived(world: Any) -> bool:
    world.wait(0.5)
    try:
        world.tick()
    except world.Killed:
        return False
    return True


def told(world: Any) -> Iterator[tuple[str, str]]:
    """What was queued, by the outbox and by the rows."""
    queued = [n for n in world.notifications() if n.new_state == "queued"]
    assert sorted(n.notification for n in queued) == sorted(world.outboxes[0].states())
    yield from ((n.receiver, n.event) for n in queued)


SWEEPS = [
    pytest.param(3, 1, id="at every third write"),
    pytest.param(1, 0, id="at every write, just before", marks=pytest.mark.slow),
    pytest.param(1, 2, id="at every write, just after", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("stride", "side"), SWEEPS)
def test_the_leader_killed_at_any_of_its_writes_leaves_one_incident_one_action_one_trigger_and_one_resolve(
    new_world: Callable[..., Any], stride: int, side: int
) -> None:
    """`side`: 0 dies before the write, 2 after it, 1 in turn."""
    for nth in range(1, MOST_WRITES, stride):
        world = new_world(f"w{nth}")
        leader = world.mortal(nth, after=side == 2 or (side == 1 and nth % 2 == 0))
        drill(world, leader)
        where = f"killed at write {nth}"
        assert len([a for a in world.attempts() if a.new_state == "issued"]) == 1, where
        assert [f.new_state for f in world.findings()] == ["open", "cleared"], where
        assert len({i.incident for i in world.incidents()}) == 1, where
        last = world.incidents()[-1]
        assert (last.new_state, last.acknowledged_by, last.next_attempt) == ("resolved", "ann", f"{world.name}-2"), where
        assert last.recovered_at and last.caught_up_at, where
        moves = [i.new_state for i in world.incidents() if i.old_state != i.new_state]
        assert moves == ["open", "mitigating", "recovering", "resolved"], where
        assert len({a.action for a in world.actions()}) == 1, where
        assert [a.new_state for a in world.actions() if a.old_state != a.new_state] == ["issued", "accepted", "succeeded"], where
        events = ["acknowledge", "resolve", "trigger"]
        assert sorted(told(world)) == [("log", e) for e in events] + [("pager", e) for e in events], where
        if leader.left > 0:
            break
    else:
        raise AssertionError("the leader writes more than was tried")
    assert nth > 15, "fewer writes than such a drill needs"
