"""Silences, maintenance and pauses through the leader's tick, over the real store; and the leader killed at each of its writes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from alerts.holds import hold_id
from pipeline.hold_records import MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.records import Request

MOST_WRITES = 60


def asks(world: Any, intent: str, kind: str, target: str, minutes: float | None = None, start: float | None = None) -> str:
    """A request about a hold; the id of the hold that it begins."""
    later = [None if m is None else world.now + timedelta(minutes=m) for m in (start, minutes)]
    world.put(
        Request(
            intent=intent, at=world.now, kind=kind, target=target, actor="ann", reason="rack move", starts_at=later[0], ends_at=later[1]
        )
    )
    return hold_id(intent)


def holds(world: Any, kind: Any) -> list[tuple[str, str]]:
    found = world.store.read(kind, f"SELECT * FROM {kind.table} ORDER BY at")
    return [(h.new_state, h.reason) for h in found]


def queued(world: Any) -> list[tuple[str, str]]:
    """What was queued for the pager, in order."""
    return [(n.dedup_key.partition(":")[2], n.event) for n in world.notifications() if n.new_state == "queued" and n.receiver == "pager"]


def running(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.wait(20)
    world.steps(60)
    world.ingest()
    world.beat()
    alive(world)


def alive(world: Any, launch: int = 1, step: int = 61) -> None:
    for rank in (0, 1):
        world.live(rank, step=step, completed=step - 1, phase="forward", since=world.now, launch=launch)


def recovers(world: Any) -> None:
    """The launcher's own restart: attempt 2 starts and completes a step."""
    world.attempt("ended", exit_code=1)
    world.wait(0.5)
    world.attempt("starting", launch=2)
    world.attempt("running", launch=2)
    world.wait(3)
    world.beat(launch=2)
    world.steps(1, first=51, launch=2)
    alive(world, launch=2, step=52)


# --- silences --------------------------------------------------------------------------------


def test_what_opens_and_resolves_inside_a_silence_never_pages_and_is_acted_on_all_the_same(world: Any) -> None:
    running(world)
    silence = asks(world, "s1", "silence", "node=node-a", minutes=10)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    assert world.actions()[-1].new_state == "issued", "a silence stops no action"
    held = [n for n in world.notifications() if n.new_state == "held"]
    assert [(n.notification.split(":")[1:], n.reason) for n in held] == [
        (["held", silence], f"node=node-a is silenced until {(world.now + timedelta(minutes=10)):%Y-%m-%d %H:%M:%S UTC} by ann: rack move")
    ]
    recovers(world)
    world.tick()
    world.wait(0.5)
    world.tick()
    assert world.incidents()[-1].new_state == "resolved"
    for _ in range(3):
        world.wait(300)  # past its end
        world.restart_jobs()
        world.tick()
    assert queued(world) == []
    assert [s for s, _ in holds(world, SilenceTransition)] == ["held", "ended"]
    assert holds(world, SilenceTransition)[-1][1].startswith("its time was over at ")
    assert len([n for n in world.notifications() if n.new_state == "held"]) == 1


def test_an_incident_that_is_open_when_its_silence_ends_pages_then_and_resolves_later(world: Any) -> None:
    running(world)
    asks(world, "s1", "silence", "run=r", minutes=1)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    assert queued(world) == []
    world.wait(59)
    world.tick()
    assert queued(world) == []
    world.wait(1.5)
    world.tick()
    assert queued(world) == [("", "trigger")]
    recovers(world)
    world.tick()
    world.wait(0.5)
    world.tick()
    assert queued(world) == [("", "trigger"), ("", "resolve")]


def test_what_was_paged_before_a_silence_still_gets_its_resolve_inside_it(world: Any) -> None:
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    assert queued(world) == [("", "trigger")]
    asks(world, "s1", "silence", "fault=rank_crash", minutes=60)
    recovers(world)
    world.restart_jobs()
    world.tick()
    world.wait(0.5)
    world.tick()
    assert queued(world) == [("", "trigger"), ("", "resolve")]
    assert not [n for n in world.notifications() if n.new_state == "held"]


def test_a_silence_that_is_ended_by_hand_lets_the_page_out_and_one_about_another_node_holds_nothing(world: Any) -> None:
    running(world)
    silence = asks(world, "s1", "silence", "node=NODE-A", minutes=60)
    world.exits(1, "-9")
    world.tick()
    assert queued(world) == []
    asks(world, "s2", "silence", "node=node-b", minutes=60)
    asks(world, "e1", "end_silence", silence)
    world.wait(0.5)
    world.tick()
    assert queued(world) == [("", "trigger")]
    assert sorted(holds(world, SilenceTransition)) == [("ended", "rack move"), ("held", "rack move"), ("held", "rack move")]


@pytest.mark.parametrize(("target", "minutes"), [("nonsense", 10), ("node=a", None)])
def test_a_silence_that_nobody_could_mean_is_not_begun(world: Any, target: str, minutes: float | None) -> None:
    asks(world, "s1", "silence", target, minutes)
    world.tick()
    assert holds(world, SilenceTransition) == []
    world.wait(1)
    world.tick()  # and the leader goes on


# --- maintenance -----------------------------------------------------------------------------


def test_a_maintenance_window_begins_when_planned_stops_actions_and_pages_and_is_told_in_the_incident(world: Any) -> None:
    running(world)
    asks(world, "m1", "maintain", "node=node-a", minutes=20, start=5)
    world.tick()
    for _ in range(2):
        world.wait(150.5)  # into the window
        world.ingest()
        world.beat()
        alive(world)
        world.tick()
    world.exits(1, "-9")
    world.tick()
    assert not world.actions()
    assert queued(world) == []
    assert world.incidents()[-1].reason.startswith("no action: node=node-a is in maintenance until ")
    (held,) = [n for n in world.notifications() if n.new_state == "held"]
    assert held.reason.startswith("node=node-a is in maintenance until ")
    world.wait(15 * 60)
    world.beat()
    world.tick()
    assert world.incidents()[-1].new_state == "mitigating", "what is still due is done after the window"
    assert [a.new_state for a in world.actions()] == ["issued"]
    assert queued(world) == [("", "trigger")]
    assert [s for s, _ in holds(world, MaintenanceTransition)] == ["held", "ended"]


# --- pause -----------------------------------------------------------------------------------


def test_a_pause_withdraws_what_no_launcher_accepted_and_after_it_the_action_is_proposed_anew(world: Any) -> None:
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    assert [a.new_state for a in world.actions()] == ["issued"]
    asks(world, "p1", "pause_actions", "actions")
    asked_at = world.now
    world.wait(0.5)
    world.tick()
    assert world.now - asked_at < timedelta(seconds=2)
    last = world.actions()[-1]
    assert (last.new_state, last.actor, last.reason) == ("cancelled", "pause", "withdrawn: acting is paused by ann: rack move")
    for _ in range(2):
        world.wait(5)
        world.beat()
        world.restart_jobs()
        world.tick()
    assert [a.new_state for a in world.actions()] == ["issued", "cancelled"], "nothing is issued while it is paused, whoever leads"
    assert world.incidents()[-1].new_state == "open"
    assert world.incidents()[-1].reason == "no action: acting is paused by ann: rack move"
    asks(world, "p2", "resume_actions", "actions")
    world.wait(0.5)
    world.tick()
    assert [a.new_state for a in world.actions()] == ["issued", "cancelled", "issued"]
    assert len({a.action for a in world.actions()}) == 2
    assert [s for s, _ in holds(world, PauseTransition)] == ["held", "ended"]
    assert queued(world) == [("", "trigger")]


def test_what_a_launcher_has_accepted_goes_on_and_that_is_said_once(world: Any) -> None:
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    world.answers(world.actions()[-1].action, "accepted")
    world.wait(0.5)
    world.tick()
    asks(world, "p1", "pause_actions", "actions", minutes=30)
    for _ in range(3):
        world.wait(0.5)
        world.tick()
    states = [(a.new_state, a.actor) for a in world.actions()]
    assert states == [("issued", "leader"), ("accepted", "launcher:node-a"), ("accepted", "pause")]
    assert world.actions()[-1].reason.startswith("goes on, since the launcher had taken it up: acting is paused until ")
    world.answers(world.actions()[-1].action, "done")
    world.wait(0.5)
    world.tick()
    assert world.actions()[-1].new_state == "succeeded"


def test_an_action_that_was_taken_up_in_the_moment_of_its_withdrawal_is_told_as_it_was(world: Any) -> None:
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    asks(world, "p1", "pause_actions", "actions", minutes=30)
    world.wait(0.5)
    world.tick()
    assert world.actions()[-1].new_state == "cancelled"
    world.wait(0.1)
    world.answers(world.actions()[-1].action, "accepted")
    world.restart_jobs()
    world.wait(0.4)
    world.tick()
    states = [a.new_state for a in world.actions()]
    assert states == ["issued", "cancelled", "accepted", "accepted"], "the last says why it goes on"
    world.wait(0.5)
    world.answers(world.actions()[-1].action, "done")
    recovers(world)
    world.tick()
    world.wait(0.5)
    world.tick()
    assert world.incidents()[-1].new_state == "resolved"


def test_a_page_made_during_a_pause_says_so_and_a_persons_approval_or_stop_waits(world: Any) -> None:
    modes = world.settings.recovery.model_copy(update={"modes": {"restart_run": "approve"}})
    world.settings = world.settings.model_copy(update={"recovery": modes})
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    waiting = world.actions()[-1]
    asks(world, "p1", "pause_actions", "actions", minutes=30)
    world.wait(0.1)
    world.asks("a1", "approve", waiting.action)
    world.asks("x1", "stop_run", "r")
    world.wait(0.4)
    world.tick()
    by_kind = {a.kind: a for a in world.actions()}
    assert by_kind["restart_run"].new_state == "waiting"
    assert by_kind["restart_run"].reason.startswith("not issued: acting is paused until ")
    assert (by_kind["stop_run"].new_state, by_kind["stop_run"].reason[:29]) == ("cancelled", "not issued: acting is paused ")
    world.wait(31 * 60)
    world.asks("a2", "approve", waiting.action)
    world.tick()
    assert {a.kind: a.new_state for a in world.actions()}["restart_run"] == "issued"


def test_a_crash_during_a_pause_is_detected_and_paged_with_the_pause_in_its_text(world: Any) -> None:
    running(world)
    asks(world, "p1", "pause_actions", "actions")
    world.tick()
    world.wait(0.5)
    world.exits(1, "-9")
    world.tick()
    (trigger,) = [n for n in world.notifications() if n.receiver == "pager"]
    assert "Surefoot: does nothing: acting is paused by ann: rack move (to go on: surefoot actions resume)." in trigger.reason
    assert not world.actions()


def test_a_page_says_the_gpus_idle_what_was_lost_and_the_work_at_risk(world: Any) -> None:
    """Two ranks; the run began 30 s before the crash, which is found 0.5 s after it: 1.0 and 60 GPU-seconds."""
    running(world)
    world.tick()
    world.wait(10)
    world.ingest()
    world.beat()
    alive(world)
    world.exits(1, "-9")
    world.wait(0.5)
    world.tick()
    (trigger,) = [n for n in world.notifications() if n.receiver == "pager"]
    assert "2 GPUs idle now, 1.0 GPU-seconds lost so far." in trigger.reason
    assert "No complete checkpoint yet: 60 GPU-seconds of work at risk." in trigger.reason


# --- acknowledged elsewhere ------------------------------------------------------------------


def test_an_acknowledgement_that_comes_after_the_resolve_changes_nothing(world: Any) -> None:
    """The echo of our own resolve, or a person who was a moment late."""
    running(world)
    world.tick()
    world.exits(1, "-9")
    world.tick()
    recovers(world)
    world.tick()
    world.wait(0.5)
    world.tick()
    last = world.incidents()[-1]
    assert last.new_state == "resolved"
    world.asks("late", "acknowledge", last.incident, actor="bob (PagerDuty)")
    world.wait(0.5)
    world.tick()
    assert world.incidents()[-1].acknowledged_by == ""
    assert queued(world) == [("", "trigger"), ("", "resolve")]


# --- kill -9 ---------------------------------------------------------------------------------


def ticks(world: Any) -> None:
    """A tick, after as many restarts as it takes."""
    while True:
        world.wait(0.5)
        try:
            world.tick()
        except world.Killed:
            world.restart_jobs()
        else:
            return


def silence_over_the_clear(world: Any) -> None:
    """Paged; silenced; acknowledged twice from elsewhere; cleared inside the silence; the silence runs out."""
    running(world)
    ticks(world)
    world.exits(1, "-9")
    ticks(world)
    incident = world.incidents()[-1].incident
    asks(world, f"s-{world.name}", "silence", f"run={world.name}", minutes=5)
    for _ in range(2):  # PagerDuty sends again what it is not sure of: the same event, the same intent
        world.asks(f"k-{world.name}", "acknowledge", incident, actor="bob (PagerDuty)")
    ticks(world)
    recovers(world)
    ticks(world)
    ticks(world)
    world.run("finished", exit_code=0)
    ticks(world)
    world.wait(301)
    ticks(world)


def pause_in_the_middle(world: Any) -> None:
    """An action is issued; all acting is paused; resumed; the action is issued anew and carried out."""
    running(world)
    ticks(world)
    world.exits(1, "-9")
    ticks(world)
    asks(world, f"p-{world.name}", "pause_actions", "actions")
    ticks(world)
    world.wait(2)
    world.beat()
    ticks(world)
    assert {a.action: a.new_state for a in world.actions()} == {world.actions()[0].action: "cancelled"}
    asks(world, f"q-{world.name}", "resume_actions", "actions")
    ticks(world)
    world.answers(world.actions()[-1].action, "accepted")
    ticks(world)
    world.answers(world.actions()[-1].action, "done")
    recovers(world)
    ticks(world)
    ticks(world)
    world.run("finished", exit_code=0)
    ticks(world)


SWEEPS = [
    pytest.param(5, 1, id="at every fifth write"),
    pytest.param(1, 0, id="at every write, just before", marks=pytest.mark.slow),
    pytest.param(1, 2, id="at every write, just after", marks=pytest.mark.slow),
]


def sweep(new_world: Callable[..., Any], stride: int, side: int, story: Callable[[Any], None]) -> Any:
    """`story` with the leader killed at one write after another; yields each world when it is over."""
    for nth in range(1, MOST_WRITES, stride):
        world = new_world(f"w{nth}")
        world.now += timedelta(minutes=10 * nth)  # a pause holds for everything: each world has a time of its own
        world.leaders_store = leader = world.mortal(nth, after=side == 2 or (side == 1 and nth % 2 == 0))
        story(world)
        yield world, f"killed at write {nth}"
        if leader.left > 0:
            return
    raise AssertionError("the leader writes more than was tried")


@pytest.mark.parametrize(("stride", "side"), SWEEPS)
def test_a_silence_over_the_clear_is_the_same_however_often_the_leader_dies(new_world: Callable[..., Any], stride: int, side: int) -> None:
    for world, where in sweep(new_world, stride, side, silence_over_the_clear):
        last = world.incidents()[-1]
        assert (last.new_state, last.acknowledged_by) == ("resolved", "bob (PagerDuty)"), where
        assert [i.actor for i in world.incidents()].count("bob (PagerDuty)") == 1, where
        assert queued(world) == [("", "trigger"), ("", "acknowledge"), ("", "resolve")], where
        mine = [h for h in world.store.read(SilenceTransition, "SELECT * FROM silences ORDER BY at") if h.matcher == f"run={world.name}"]
        assert [h.new_state for h in mine] == ["held", "ended"], where
        assert not [n for n in world.notifications() if n.new_state == "held"], where


@pytest.mark.parametrize(("stride", "side"), SWEEPS)
def test_a_pause_in_the_middle_of_an_action_is_the_same_however_often_the_leader_dies(
    new_world: Callable[..., Any], stride: int, side: int
) -> None:
    for world, where in sweep(new_world, stride, side, pause_in_the_middle):
        moves = [a.new_state for a in world.actions() if a.new_state != a.old_state]
        assert moves == ["issued", "cancelled", "issued", "accepted", "succeeded"], where
        assert len({a.action for a in world.actions()}) == 2, where
        assert world.incidents()[-1].new_state == "resolved", where
        assert queued(world) == [("", "trigger"), ("", "resolve")], where
