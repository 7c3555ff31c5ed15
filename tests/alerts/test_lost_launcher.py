"""A launcher that is killed: it is found and told, and its run is ended once when nothing of it is left. And who comes after it."""

from datetime import timedelta
from typing import Any

import pytest

from alerts.detectors.heartbeat_lost import RANKS_GONE
from alerts.recovery.actuators.lost_runs import ALL_WELL
from pipeline.records import AttemptTransition, Beat, Request, RunTransition


def running(world: Any) -> None:
    world.run()
    world.attempt("issued")
    world.attempt("starting")
    world.attempt("running")
    world.wait(20)
    world.steps(60)
    goes_on(world, 15)


def goes_on(world: Any, seconds: int, *, launcher: bool = True, launch: int = 1, state: str = "S") -> None:
    """The world for so long, with its agent, and with or without its launcher."""
    for _ in range(seconds):
        world.wait(1)
        world.ingest()
        if launcher:
            world.beat(launch=launch)
        for rank in (0, 1):
            world.live(rank, step=61, completed=60, phase="forward", since=world.now, launch=launch, state=state)
        world.tick()


def runs(world: Any) -> list[RunTransition]:
    return world.store.read(RunTransition, "SELECT * FROM runs WHERE run = {run:String} ORDER BY at", {"run": world.name})


def test_a_killed_launcher_is_paged_restarts_nothing_and_its_run_is_ended_once_when_its_ranks_are_gone(world: Any) -> None:
    running(world)
    assert not world.incidents()
    goes_on(world, 12, launcher=False)
    (incident,) = world.incidents()
    assert (incident.fault, incident.severity, incident.new_state, incident.node, incident.located_at) == (
        "launcher_lost",
        "critical",
        "open",
        "node-a",
        incident.detected_at,
    )
    assert [n.event for n in world.notifications() if n.receiver == "pager"] == ["trigger"]
    goes_on(world, 90, launcher=False)
    assert [r.new_state for r in runs(world)] == ["started"], "its ranks still work"
    assert not world.actions()

    for state in "XX":
        goes_on(world, 2, launcher=False, state=state)
        world.restart_jobs()
    goes_on(world, 15, launcher=False, state="X")
    started, failed = runs(world)
    assert (failed.old_state, failed.new_state, failed.actor, failed.reason, failed.exit_code) == (
        "started",
        "failed",
        "leader",
        RANKS_GONE,
        None,
    )
    assert (failed.node, failed.command) == (started.node, started.command)
    last = world.incidents()[-1]
    assert last.new_state == "open", "as of any run that failed for good: somebody has to say that they know"
    world.asks("i1", "acknowledge", last.incident)
    world.tick()
    world.tick()
    assert world.incidents()[-1].new_state == "resolved"


def test_a_run_of_which_nothing_is_heard_under_an_agent_that_speaks_is_over_after_a_minute(world: Any) -> None:
    running(world)
    lost_at = world.now
    while len(runs(world)) == 1 and world.mono < 1300:
        world.wait(2)
        world.ingest()
        world.store.insert_rows(
            "host_raw", [{"device_id": 1, "ts": world.now, "node": "node-a", "load1": 1.0}], token=f"agent:{world.mono}"
        )
        world.tick()
    assert 60 < (runs(world)[-1].at - lost_at).total_seconds() <= 64
    assert {f.fault for f in world.findings()} == {"launcher_lost"}


def test_a_run_whose_host_is_silent_as_a_whole_is_not_ended_by_the_leader(world: Any) -> None:
    running(world)
    for _ in range(40):
        world.wait(2)
        world.ingest()
        world.tick()
    assert [r.new_state for r in runs(world)] == ["started"], "it may be the network alone"
    assert {f.fault for f in world.findings()} == {"host_down"}


def test_a_run_whose_attempt_has_ended_and_whose_launcher_is_gone_is_ended_as_soon_as_that_is_found(world: Any) -> None:
    running(world)
    world.attempt("stopping")
    world.attempt("ended", exit_code=1)
    goes_on(world, 13, launcher=False, state="X")
    assert [(r.new_state, r.actor) for r in runs(world)] == [("started", "launcher"), ("failed", "leader")]


def test_a_launcher_that_speaks_again_was_not_lost(world: Any) -> None:
    world.settings = world.settings.model_copy(update={"detect": world.settings.detect.model_copy(update={"settle": 5})})
    running(world)
    goes_on(world, 14, launcher=False)
    goes_on(world, 2)
    assert [(f.fault, f.new_state, f.reason) for f in world.findings()][-1] == ("launcher_lost", "cleared", "the launcher is heard again")
    assert world.incidents()[-1].new_state == "open", "for a while it may fall silent again"
    goes_on(world, 5)
    assert world.incidents()[-1].new_state == "resolved"
    assert [r.new_state for r in runs(world)] == ["started"]


def test_a_clean_end_and_a_restart_of_jobs_and_an_ingest_that_was_away_raise_nothing(world: Any) -> None:
    running(world)
    world.restart_jobs()
    goes_on(world, 3)
    world.wait(120)  # nothing at all comes in, and then the agent's word before the launcher's
    world.tick()
    goes_on(world, 3, launcher=False)
    goes_on(world, 15)
    world.attempt("ended", exit_code=0)
    world.run("finished", exit_code=0)
    goes_on(world, 30, launcher=False, state="X")
    assert not world.findings()
    assert [r.new_state for r in runs(world)] == ["started", "finished"]


# --- who comes after it ------------------------------------------------------------------------


def test_a_launcher_that_asks_for_a_launch_that_was_used_up_gets_the_next_free_one_once(world: Any) -> None:
    world.run()
    for launch in (1, 2):
        world.attempt("issued", launch=launch)
        world.attempt("starting", launch=launch)
        world.wait(1)
        world.attempt("ended", launch=launch, exit_code=1)
    world.run("failed", exit_code=1)
    world.wait(5)
    world.beat(state="starting", attempt="")  # its count of launches was lost: it asks for launch 1 again
    world.tick()
    assert not issued(world, 3), "the run has not been started again"
    world.run()
    for _ in range(3):
        world.wait(0.5)
        world.beat(state="starting", attempt="")
        world.tick()
        world.restart_jobs()
    assert issued(world, 3) == ["r-3"]
    assert not issued(world, 4)


def test_a_run_that_nobody_looks_at_any_more_does_not_get_an_attempt_a_second_time(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("ended", exit_code=0)
    world.run("finished", exit_code=0)
    world.wait(3600)
    world.beat(state="starting", attempt="")
    world.tick()
    assert not issued(world, 1)
    world.wait(0.5)
    world.run()
    world.tick()
    assert issued(world, 2) == ["r-2"]


def test_an_attempt_that_a_killed_launcher_left_open_is_used_up_too(world: Any) -> None:
    running(world)
    world.wait(30)
    world.run()
    world.beat(state="starting", attempt="")
    world.tick()
    world.wait(0.5)
    world.tick()
    assert issued(world, 2) == ["r-2"]


def test_a_command_that_ends_before_its_launcher_speaks_again_gets_no_second_attempt(world: Any) -> None:
    world.run()
    world.wait(0.1)
    world.beat(state="starting", attempt="")
    world.attempt("issued")
    world.wait(0.1)
    world.attempt("starting")
    world.wait(0.1)
    world.attempt("ended", exit_code=0)
    world.tick()
    assert not issued(world, 2)


def issued(world: Any, launch: int) -> list[str]:
    return [a.attempt for a in world.attempts() if (a.new_state, a.launch, a.actor) == ("issued", launch, "leader")]


# --- of several nodes, once their commands have ended well ----------------------------------------


def says(world: Any, node: str, state: str, ranks: str = "") -> None:
    what = {"run": world.name, "attempt": f"{world.name}-1", "launch": 1, "nodes": "1:2"}
    world.put(Beat(component="launcher", at=world.now, node=node, state=state, ranks=ranks, **what))


def of_two(world: Any) -> None:
    """A run on node-a, which speaks for it, and node-b, whose commands have both begun."""
    world.run()
    for state in ("issued", "starting", "running"):
        one = {"run": world.name, "attempt": f"{world.name}-1", "launch": 1, "node": "node-a", "nodes": "node-a,node-b"}
        world.put(AttemptTransition(old_state="", new_state=state, reason="", actor="launcher", at=world.now, **one))
    passes(world, 20, {"node-a": "running", "node-b": "running"})


def passes(world: Any, seconds: int, states: dict[str, str]) -> None:
    for second in range(seconds):
        world.wait(1)
        world.ingest()
        for node, state in states.items():
            says(world, node, state)
        if second % 5 == 0:
            agents = [{"device_id": n, "ts": world.now, "node": f"node-{node}", "load1": 1.0} for n, node in enumerate("ab")]
            world.store.insert_rows("host_raw", agents, token=f"agents:{world.mono}")
        world.tick()


def test_a_node_that_leaves_or_is_killed_after_its_command_ended_well_costs_the_others_nothing(world: Any) -> None:
    of_two(world)
    passes(world, 3, {"node-a": "running", "node-b": "done"})
    world.wait(0.2)
    says(world, "node-b", "gone", "well")
    passes(world, 90, {"node-a": "running"})
    assert not world.findings() and not world.actions()
    assert [r.new_state for r in runs(world)] == ["started"]


def test_a_run_that_ended_well_everywhere_is_finished_by_the_leader_where_who_speaks_for_it_was_killed(world: Any) -> None:
    of_two(world)
    world.attempt("ended", exit_code=0)
    passes(world, 3, {"node-a": "finishing", "node-b": "running"})
    passes(world, 30, {"node-b": "running"})
    assert [r.new_state for r in runs(world)] == ["started"], "the other node still works"
    passes(world, 3, {"node-b": "done"})
    assert [(r.new_state, r.actor, r.exit_code, r.reason) for r in runs(world)][1:] == [("finished", "leader", 0, ALL_WELL)]
    assert not world.findings() and not world.actions()


@pytest.mark.parametrize("node", ["node-a", "node-b"], ids=["who speaks for the run", "another"])
def test_a_node_in_maintenance_is_drained_and_the_run_goes_on_without_it_at_once(world: Any, node: str) -> None:
    of_two(world)
    until = world.now + timedelta(hours=2)
    world.put(Request(intent="m", at=world.now, kind="maintain", target=f"node={node}", actor="ann", reason="disk", ends_at=until))
    other = {"node-a": "node-b", "node-b": "node-a"}[node]
    world.wait(0.2)
    says(world, node, "gone")
    passes(world, 4, {other: "running"})
    assert [(a.kind, a.new_state) for a in world.actions()] == [("restart_run", "issued")]
    assert world.incidents()[-1].node == node


def test_a_run_with_a_node_in_maintenance_is_not_begun_anew_for_what_happens_on_another(world: Any) -> None:
    of_two(world)
    until = world.now + timedelta(hours=2)
    world.put(Request(intent="m", at=world.now, kind="maintain", target="node=node-b", actor="ann", reason="disk", ends_at=until))
    world.exits(0, "-9")
    passes(world, 2, {"node-a": "waiting", "node-b": "running"})
    assert not world.actions(), "a restart would be one of the ranks on node-b, too"
    assert world.incidents()[-1].reason.startswith("no action: node=node-b is in maintenance until ")


def test_a_run_whose_launchers_are_gone_ends_also_where_no_agent_is_there(world: Any) -> None:
    world.run()
    world.attempt("running")
    world.beat()
    for _ in range(92):
        world.wait(10)
        world.ingest()
        world.tick()
        if len(runs(world)) > 1:
            break
    assert [(r.new_state, r.actor) for r in runs(world)] == [("started", "launcher"), ("failed", "leader")]
    assert {f.fault for f in world.findings()} == {"launcher_lost"}
