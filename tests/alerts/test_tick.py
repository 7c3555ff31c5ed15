"""The leader's tick over rows as launchers and agents write them, against the real store, with a clock that we turn."""

from datetime import timedelta
from typing import Any

WARM = 60  # steps from which the run's own pace is known


def running(world: Any) -> None:
    """A run that has completed 60 steps and goes on."""
    world.run()
    world.attempt("issued")
    world.attempt("starting")
    world.attempt("running")
    world.wait(20)
    world.steps(WARM)
    world.ingest()
    world.beat()
    both(world)


def both(world: Any, launch: int = 1, step: int = WARM + 1) -> None:
    """Both ranks move, now."""
    for rank in (0, 1):
        world.live(rank, step=step, completed=step - 1, phase="forward", since=world.now, launch=launch)


def second_attempt(world: Any) -> None:
    """What a launcher and an agent write while attempt 2 starts, resumes at step 51 and completes it."""
    (action,) = {a.action for a in world.actions()}
    world.wait(0.5)
    world.answers(action, "accepted")
    world.attempt("stopping")
    world.attempt("ended", exit_code=-9)
    world.wait(0.5)
    world.answers(action, "done")
    world.attempt("starting", launch=2, action=action)
    world.attempt("running", launch=2)
    world.tick()
    world.wait(5)
    world.beat(launch=2)
    world.steps(1, first=51, launch=2)
    both(world, launch=2, step=52)
    world.tick()


def test_a_killed_rank_is_found_located_restarted_and_paged_in_one_tick_and_resolved_when_the_next_attempt_steps(world: Any) -> None:
    running(world)
    world.tick()
    assert not world.incidents()
    world.wait(0.3)
    killed_at = world.now
    world.exits(1, "-9", signal="SIGKILL")
    world.wait(0.4)
    world.tick()

    opened, mitigating = world.incidents()
    assert (opened.new_state, mitigating.new_state) == ("open", "mitigating")
    assert (opened.fault, opened.node, opened.rank, opened.attempt, opened.layer) == ("rank_crash", "node-a", 1, "r-1", "framework")
    assert (opened.onset, opened.detected_at, opened.located_at) == (killed_at, world.now, world.now)
    assert mitigating.acted_at == world.now
    (action,) = world.actions()
    assert (action.kind, action.new_state, action.new_attempt, action.launch, action.attempt) == ("restart_run", "issued", "r-2", 2, "r-1")
    assert (action.grace, action.deadline, action.term) == (0.0, world.now + timedelta(seconds=120), 1)
    assert [(n.receiver, n.event, n.new_state) for n in world.notifications()] == [
        ("pager", "trigger", "queued"),
        ("log", "trigger", "queued"),
    ]

    second_attempt(world)
    last = world.incidents()[-1]
    assert (last.new_state, last.next_attempt) == ("resolved", "r-2")
    assert last.recovered_at == world.now, "the end of the first step of attempt 2"
    assert last.caught_up_at is None
    assert [f.new_state for f in world.findings()] == ["open", "cleared"]
    assert sorted((n.receiver, n.event) for n in world.notifications()) == [
        ("log", "resolve"),
        ("log", "trigger"),
        ("pager", "resolve"),
        ("pager", "trigger"),
    ]
    assert {n.dedup_key for n in world.notifications()} == {last.incident}

    world.wait(3)
    world.steps(9, first=52, launch=2)  # up to step 60, the last that attempt 1 had completed
    both(world, launch=2, step=61)
    world.tick()
    caught_up = world.incidents()[-1]
    assert (caught_up.old_state, caught_up.new_state, caught_up.caught_up_at) == ("resolved", "resolved", world.now)
    assert len({i.incident for i in world.incidents()}) == 1
    times = [i.at for i in world.incidents()]
    assert times == sorted(set(times)), "each transition is later than the one before: the last by time is the present"


def test_a_stopped_rank_is_found_within_six_seconds_and_named(world: Any) -> None:
    running(world)
    world.tick()
    stopped_at = world.now
    while not world.incidents() and world.now - stopped_at < timedelta(seconds=10):
        world.wait(0.5)
        if world.mono % 1 == 0:  # an unchanged live cell is sent once a second
            world.live(0, step=61, completed=60, phase="backward", since=stopped_at + timedelta(seconds=0.1))
            world.live(1, step=61, completed=60, phase="forward", since=stopped_at, state="T")
            world.beat()
        world.tick()
    incident = world.incidents()[0]
    assert (incident.fault, incident.rank, incident.node, incident.layer) == ("rank_stopped", 1, "node-a", "framework")
    assert incident.detected_at - stopped_at <= timedelta(seconds=4)
    assert incident.onset == stopped_at + timedelta(seconds=0.1), "the last thing that any rank did"
    assert incident.located_at == incident.detected_at
    assert world.actions()[-1].new_state == "issued"
    second_attempt(world)
    assert world.incidents()[-1].new_state == "resolved"


def test_nothing_is_written_while_all_is_well(world: Any) -> None:
    running(world)
    for _ in range(4):
        world.wait(0.5)
        both(world)
        world.tick()
    assert not world.findings() and not world.incidents() and not world.actions() and not world.notifications()


def test_a_launcher_that_starts_gets_its_attempt_once(world: Any) -> None:
    world.beat(state="starting", attempt="")
    world.tick()
    world.run()
    world.beat(state="starting", attempt="")
    world.tick()
    world.restart_jobs()
    world.tick()
    assert [(a.attempt, a.launch, a.old_state, a.new_state, a.node) for a in world.attempts()] == [("r-1", 1, "", "issued", "node-a")]


def test_an_attempt_that_the_launcher_minted_itself_is_used_as_it_is(world: Any) -> None:
    world.run()
    world.beat(state="starting", attempt="")
    world.attempt("starting")
    world.tick()
    assert [a.new_state for a in world.attempts()] == ["starting"]


def test_a_start_up_failure_is_restarted_once_and_then_the_run_is_ended_and_somebody_told(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.wait(2)
    world.attempt("ended", exit_code=1)
    world.beat(state="waiting")
    world.tick()
    assert [(a.kind, a.new_state) for a in world.actions()] == [("restart_run", "issued")]
    assert world.incidents()[0].fault == "startup_failure"

    world.wait(1)
    world.answers(world.actions()[0].action, "done")
    world.attempt("starting", launch=2)
    world.tick()
    world.wait(2)
    world.attempt("ended", launch=2, exit_code=1)
    world.tick()
    last = world.actions()[-1]
    assert (last.kind, last.new_state, last.attempt) == ("end_run", "issued", "r-2")
    assert "restarted once" in last.reason
    assert len({i.incident for i in world.incidents()}) == 1, "one outage, one incident"
    assert world.incidents()[-1].fault == "restart_loop"

    world.wait(1)
    world.answers(last.action, "done")
    world.run("failed", exit_code=1)
    world.tick()
    assert world.incidents()[-1].new_state == "open", "the run is dead: somebody has to look"
    world.asks("i1", "acknowledge", last.incident)
    world.tick()
    world.tick()
    assert world.incidents()[-1].new_state == "resolved"
    assert world.incidents()[-1].acknowledged_by == "ann"
    paged = [(n.dedup_key.partition(":")[2], n.event) for n in world.notifications() if n.receiver == "pager"]
    assert paged[:2] == [("", "trigger"), ("stopped", "trigger")], "that it is not restarted any more is a page of its own"
    assert sorted(paged[2:]) == [("", "acknowledge"), ("", "resolve"), ("stopped", "acknowledge"), ("stopped", "resolve")]


def test_who_acknowledged_a_restart_is_woken_again_when_the_run_is_not_restarted_any_more(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.wait(2)
    world.attempt("ended", exit_code=1)
    world.beat(state="waiting")
    world.tick()
    incident = world.incidents()[0].incident
    world.asks("i1", "acknowledge", incident)
    world.wait(1)
    world.tick()
    world.answers(world.actions()[0].action, "done")
    world.attempt("starting", launch=2)
    world.tick()
    world.wait(2)
    world.attempt("ended", launch=2, exit_code=1)
    world.tick()
    world.wait(1)
    world.answers(world.actions()[-1].action, "done")
    world.run("failed", exit_code=1)
    world.tick()
    world.tick()
    assert (world.incidents()[-1].new_state, world.incidents()[-1].acknowledged_by) == ("open", ""), "nobody knows of this yet"
    events = [(n.dedup_key.partition(":")[2], n.event) for n in world.notifications() if n.receiver == "pager"]
    assert events == [("", "trigger"), ("", "acknowledge"), ("stopped", "trigger")]
    world.asks("i2", "acknowledge", incident)
    world.wait(1)
    world.tick()
    world.wait(1)
    world.tick()
    assert world.incidents()[-1].new_state == "resolved"
    events = [(n.dedup_key.partition(":")[2], n.event) for n in world.notifications() if n.receiver == "pager"]
    assert sorted(events[3:]) == [("", "resolve"), ("stopped", "acknowledge"), ("stopped", "resolve")]


def test_a_failure_that_comes_back_at_the_same_place_ends_the_run_after_three_restarts(world: Any) -> None:
    world.run()
    world.ingest()
    for launch in (1, 2, 3, 4):
        world.attempt("starting", launch=launch)
        world.attempt("running", launch=launch)
        world.wait(5)
        world.steps(3, first=launch * 10, launch=launch)
        both(world, launch=launch, step=launch * 10 + 3)
        world.beat(launch=launch)
        world.tick()
        world.wait(1)
        world.exits(1, "-11", launch=launch)
        world.tick()
        world.wait(1)
        world.attempt("ended", launch=launch, exit_code=1)
        world.answers(world.actions()[-1].action, "done")
    kinds = [(a.kind, a.attempt) for a in world.actions() if a.old_state == ""]
    assert kinds == [("restart_run", "r-1"), ("restart_run", "r-2"), ("restart_run", "r-3"), ("end_run", "r-4")]
    assert "rank 1 on node-a" in world.actions()[-1].reason


def test_in_mode_approve_nothing_happens_until_somebody_approves_and_then_once(world: Any) -> None:
    world.settings = world.settings.model_copy(
        update={"recovery": world.settings.recovery.model_copy(update={"modes": {"restart_run": "approve"}})}
    )
    running(world)
    world.exits(0, "-9")
    world.tick()
    (action,) = world.actions()
    assert (action.new_state, action.deadline) == ("waiting", None)
    assert world.incidents()[-1].new_state == "open"
    world.wait(30)
    world.asks("i1", "approve", action.action)
    world.asks("i1", "approve", action.action)
    world.asks("i2", "approve", action.action, actor="bob")
    world.tick()
    world.restart_jobs()
    world.term -= 1
    world.tick()
    assert [(a.new_state, a.actor) for a in world.actions()] == [("waiting", "leader"), ("issued", "ann")]
    assert world.actions()[-1].deadline == world.now + timedelta(seconds=120)
    assert world.incidents()[-1].new_state == "mitigating"


def test_a_cancelled_action_is_not_proposed_again(world: Any) -> None:
    world.settings = world.settings.model_copy(
        update={"recovery": world.settings.recovery.model_copy(update={"modes": {"restart_run": "approve"}})}
    )
    running(world)
    world.exits(0, "-9")
    world.tick()
    world.asks("i1", "cancel", world.actions()[0].action)
    for _ in range(3):
        world.wait(1)
        world.tick()
    assert [a.new_state for a in world.actions()] == ["waiting", "cancelled"]


def test_an_action_that_no_launcher_takes_up_expires_and_is_tried_once_more(world: Any) -> None:
    running(world)
    world.exits(0, "-9")
    world.tick()
    world.wait(121)
    world.tick()
    world.wait(1)
    world.tick()
    assert [a.new_state for a in world.actions()] == ["issued", "expired", "issued"]
    assert len({a.action for a in world.actions()}) == 2
    world.wait(121)
    for _ in range(3):
        world.wait(1)
        world.tick()
    assert [a.new_state for a in world.actions()] == ["issued", "expired", "issued", "expired"]
    assert world.incidents()[-1].new_state == "open"
    assert world.incidents()[-1].reason == "no action: 2 actions on r-1 came to nothing"


def test_a_new_leader_stands_by_what_the_last_one_issued(world: Any) -> None:
    running(world)
    world.exits(0, "-9")
    world.tick()
    world.restart_jobs()
    world.wait(0.5)
    world.tick()
    world.wait(0.5)
    world.tick()
    assert [(a.new_state, a.term) for a in world.actions()] == [("issued", 1), ("issued", 2)]
    assert len({a.action for a in world.actions()}) == 1


def test_a_person_stops_a_run_once_and_no_failure_is_found_in_that(world: Any) -> None:
    running(world)
    world.asks("i1", "stop_run", "r")
    world.tick()
    world.restart_jobs()
    world.term -= 1
    world.tick()
    (action,) = world.actions()
    assert (action.kind, action.new_state, action.actor, action.grace, action.attempt) == ("stop_run", "issued", "ann", 10.0, "r-1")
    world.wait(1)
    world.attempt("stopping")
    world.wait(1)
    world.exits(0, "-15", stopped_by="launcher")
    world.exits(1, "-15", stopped_by="launcher")
    world.attempt("ended", exit_code=-15)
    world.run("stopped", exit_code=-15)
    world.tick()
    assert not world.findings()
    assert world.actions()[-1].new_state == "succeeded"


def test_an_open_incident_of_a_run_that_somebody_interrupts_is_resolved_with_the_reason(world: Any) -> None:
    running(world)
    world.tick()
    world.exits(1, "1")
    world.attempt("ended", exit_code=1)
    world.tick()
    assert world.incidents()[-1].new_state == "mitigating"
    world.run("stopped", exit_code=1)
    world.tick()
    last = world.incidents()[-1]
    assert (last.new_state, last.reason.split(":")[0]) == ("resolved", "the run was stopped")
    assert (world.actions()[-1].new_state, world.actions()[-1].reason) == ("failed", "the run is stopped")


def test_a_silent_agent_opens_its_own_incident_restarts_nothing_and_a_silence_of_both_is_the_host(world: Any) -> None:
    running(world)
    for _ in range(30):
        world.wait(0.5)
        world.ingest()
        world.beat()
        both(world)
        world.tick()
    for _ in range(30):  # 15 s without the agent
        world.wait(0.5)
        world.ingest()
        world.beat()
        world.tick()
    assert [(i.fault, i.severity, i.new_state, i.node) for i in world.incidents()] == [("telemetry_lost", "warning", "open", "node-a")]
    assert not world.actions()
    for _ in range(30):  # and 15 s without the launcher
        world.wait(0.5)
        world.ingest()
        world.tick()
    last = world.incidents()[-1]
    assert (last.fault, last.severity, last.new_state) == ("host_down", "critical", "open")
    assert len({i.incident for i in world.incidents()}) == 1
    assert not world.actions()
    assert "launcher on that host does not answer" in last.reason


def test_a_failure_that_is_long_past_is_not_replayed(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.exits(1, "-9")
    world.attempt("ended", exit_code=1)
    world.wait(11 * 60)
    world.attempt("starting", launch=2)
    world.attempt("running", launch=2)
    world.tick()
    assert not world.findings()


def test_a_restart_by_the_launchers_own_policy_is_still_told_as_an_incident_that_recovers(world: Any) -> None:
    running(world)
    world.exits(1, "-9")
    world.attempt("ended", exit_code=1)
    world.wait(1)
    world.attempt("starting", launch=2)
    world.attempt("running", launch=2)
    world.wait(3)
    world.beat(launch=2)
    world.steps(1, first=51, launch=2)
    both(world, launch=2, step=52)
    world.tick()
    world.wait(0.5)
    world.tick()
    last = world.incidents()[-1]
    assert (last.fault, last.new_state, last.next_attempt, last.recovered_at) == ("rank_crash", "resolved", "r-2", last.recovered_at)
    assert last.recovered_at is not None
    assert not world.actions()


class Counting:
    """The real store, counting its questions."""

    def __init__(self, store: Any) -> None:
        self._store, self.asked = store, 0

    def __getattr__(self, name: str) -> Any:
        self.asked += name in ("query", "read")
        return getattr(self._store, name)


def test_a_tick_asks_one_question_while_nothing_runs_and_a_handful_while_all_is_well(world: Any) -> None:
    world.leaders_store = counting = Counting(world.store)
    world.tick()
    counting.asked = 0
    for _ in range(5):
        world.wait(0.5)
        world.tick()
    assert counting.asked == 5
    running(world)
    world.tick()
    counting.asked = 0
    for _ in range(20):
        world.wait(0.5)
        world.tick()
    assert counting.asked <= 20 * 4


def test_a_leader_that_is_started_again_in_the_middle_of_a_hang_still_finds_it(world: Any) -> None:
    running(world)
    world.tick()
    hung_since = world.now
    for _ in range(3):
        world.wait(1)
        world.live(0, step=61, completed=60, phase="backward", since=hung_since)
        world.live(1, step=61, completed=60, phase="forward", since=hung_since, state="T")
        world.tick()
        world.restart_jobs()
    world.wait(1)
    world.live(0, step=61, completed=60, phase="backward", since=hung_since)
    world.live(1, step=61, completed=60, phase="forward", since=hung_since, state="T")
    world.tick()
    world.wait(1)
    world.live(1, step=61, completed=60, phase="forward", since=hung_since, state="T")
    world.tick()
    last = world.incidents()[-1]
    assert (last.fault, last.rank, last.onset) == ("rank_stopped", 1, hung_since)


def test_a_wall_clock_that_steps_an_hour_ahead_raises_nothing(world: Any) -> None:
    running(world)
    world.tick()
    trainers = world.now  # a trainer's times come from its monotonic clock: they do not step
    world.now += timedelta(hours=1)
    for n in range(1, 12):
        world.wait(0.5)
        trainers += timedelta(seconds=0.5)
        world.ingest()
        world.beat()
        for rank in (0, 1):
            world.live(rank, step=61 + n, completed=60 + n, phase="forward", since=trainers)
        world.tick()
    assert not world.findings()


def test_a_hang_after_a_restart_inside_torchrun_is_the_launchers_attempt(world: Any) -> None:
    running(world)
    world.wait(1)
    hung_since = world.now
    for n in range(5):
        world.wait(1)
        for rank in (0, 1):
            row = {"run": "r", "attempt": "r-1.1", "node": "node-a", "rank": rank, "at": world.now, "pid": 7, "step": 3, "completed": 2}
            more = {"phase": "backward", "since": hung_since, "process_state": "T" if rank else "S"}
            world.store.insert_rows("live", [row | more], token=f"inner:{rank}:{n}")
        world.tick()
    assert (world.incidents()[0].attempt, world.incidents()[0].rank) == ("r-1", 1)
    assert world.actions()[0].attempt == "r-1"
