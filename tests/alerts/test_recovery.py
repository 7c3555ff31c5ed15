"""Policy and envelope: what is done, how often, in which mode, and what is not done any more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import first_transition
from alerts.incidents.lifecycle import State, move
from alerts.recovery.actuators.launcher import answered
from alerts.recovery.envelope import expire, propose, renew, settled_by_rows, stale
from alerts.recovery.policy import Case, Proposal, Refusal, Restart, decide
from alerts.snapshot import Answer, AttemptLook, RunLook
from pipeline.catalog.actions import END_RUN, RESTART_RUN
from pipeline.catalog.faults import HOST_DOWN, NODE_LEFT, RANK_CRASH, STARTUP_FAILURE, TELEMETRY_LOST, Fault
from pipeline.catalog.layers import ActionMode
from pipeline.records import ActionTransition
from pipeline.settings import RecoverySettings, Settings

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
LIMITS = Settings().recovery


def attempt(launch: int = 5, state: str = "running") -> AttemptLook:
    return AttemptLook(run="r", attempt=f"r-{launch}", launch=launch, state=state)


def run(*attempts: AttemptLook, state: str = "started") -> RunLook:
    return RunLook(
        run="r", node="a", state=state, started_at=NOW, changed_at=NOW, exit_code=None, reason="", attempts=attempts or (attempt(),)
    )


def case(fault: Fault = RANK_CRASH, restarts: list[Restart] | None = None, **more: Any) -> Case:
    usual = {"run": run(), "attempt": attempt(), "node": "a", "rank": 1, "last_step": 500, "tries": 0, "short": "", "settings": LIMITS}
    return Case(fault=fault, restarts=restarts or [], **{**usual, **more})


def past(seconds: float, launch: int = 1, fault: str = "rank_crash", rank: int | None = 1, last_step: int | None = 100) -> Restart:
    return Restart(
        attempt=f"r-{launch}",
        new_attempt=f"r-{launch + 1}",
        at=NOW - timedelta(seconds=seconds),
        fault=fault,
        node="a",
        rank=rank,
        last_step=last_step,
    )


def test_a_crash_is_restarted_in_place_as_the_next_launch() -> None:
    proposal = decide(case(), NOW)
    assert isinstance(proposal, Proposal)
    assert (proposal.kind, proposal.attempt, proposal.new_attempt, proposal.launch) == (RESTART_RUN, "r-5", "r-6", 6)


@pytest.mark.parametrize(
    ("restarts", "again"),
    [
        ([past(60), past(120)], True),
        ([past(60), past(120), past(180)], False),  # the same rank a fourth time in an hour
        ([past(60), past(120), past(3600)], True),  # one of them is out of the window of 3600 s
        ([past(60, rank=0), past(120, rank=2), past(180, rank=3)], True),  # other ranks, and it got further each time
        ([past(n, rank=n, last_step=500) for n in (2, 3, 4)], False),  # never beyond the same step, whichever rank fails first
        ([past(n, fault="rank_stopped") for n in (2, 3, 4)], True),  # another fault
        ([past(n, rank=n, last_step=None) for n in range(20)], False),  # twenty restarts of one run
    ],
)
def test_restarts_are_limited_by_signature_and_by_run(restarts: list[Restart], again: bool) -> None:
    proposal = decide(case(restarts=restarts), NOW)
    assert isinstance(proposal, Proposal)
    assert (proposal.kind is RESTART_RUN) == again
    assert (proposal.fault is None) == again
    if not again:
        assert (proposal.kind, proposal.fault and proposal.fault.name) == (END_RUN, "restart_loop")


def test_a_start_up_failure_is_restarted_once_and_one_that_follows_a_good_attempt_has_its_own_once() -> None:
    def kind(*restarts: Restart) -> object:
        return getattr(decide(case(STARTUP_FAILURE, list(restarts), rank=None, last_step=None), NOW), "kind", None)

    assert kind() is RESTART_RUN
    assert kind(past(5, launch=4, fault="startup_failure", rank=None, last_step=None)) is END_RUN
    assert kind(past(500, launch=1, fault="startup_failure", rank=None, last_step=None), past(5, launch=4)) is RESTART_RUN


def test_a_host_that_is_down_is_left_out_where_enough_nodes_are_left() -> None:
    proposal = decide(case(HOST_DOWN), NOW)
    assert isinstance(proposal, Proposal)
    assert (proposal.kind, proposal.reason[-51:]) == (RESTART_RUN, "restart without a from the last complete checkpoint")


def test_what_is_done_about_a_node_that_left_reads_as_a_sentence() -> None:
    proposal = decide(case(NODE_LEFT), NOW)
    assert isinstance(proposal, Proposal)
    assert proposal.reason == ("a node has left its run: restart on the nodes whose launchers are ready, from the last complete checkpoint")


@pytest.mark.parametrize(("fault", "why"), [(HOST_DOWN, "does not answer"), (TELEMETRY_LOST, "nothing is done")])
def test_what_a_restart_in_place_cannot_mend_is_refused_with_the_reason(fault: Fault, why: str) -> None:
    refusal = decide(case(fault, short="the launcher on that host does not answer"), NOW)
    assert isinstance(refusal, Refusal) and why in refusal.reason


def test_actions_that_come_to_nothing_are_not_repeated_for_ever() -> None:
    assert isinstance(decide(case(tries=1), NOW), Proposal)
    assert decide(case(tries=2), NOW) == Refusal("2 actions on r-5 came to nothing")


def test_a_limit_of_no_restarts_means_none() -> None:
    proposal = decide(case(settings=RecoverySettings(max_restarts_per_run=0)), NOW)
    assert isinstance(proposal, Proposal) and proposal.kind is END_RUN


def made(mode: ActionMode, earlier: int = 0) -> ActionTransition | Refusal:
    proposal = decide(case(), NOW)
    assert isinstance(proposal, Proposal)
    verdict = Verdict(key="k", detector="rank_exit", fault=RANK_CRASH, run="r", attempt="r-5", reason="seen", onset=NOW, node="a", rank=1)
    incident = first_transition(verdict, "i", NOW)
    return propose(proposal, incident, mode, term=3, earlier=earlier, node="a", now=NOW)


def action(mode: ActionMode = ActionMode.AUTO, earlier: int = 0) -> ActionTransition:
    one = made(mode, earlier)
    assert isinstance(one, ActionTransition)
    return one


@pytest.mark.parametrize(("mode", "state"), [("dry-run", "dry_run"), ("approve", "waiting"), ("auto", "issued")])
def test_the_mode_decides_how_far_an_action_goes_by_itself(mode: str, state: str) -> None:
    one = action(ActionMode(mode))
    assert (one.new_state, one.mode, one.term) == (state, mode, 3)
    assert (one.deadline is not None) == (state == "issued")


def test_an_action_that_is_off_is_refused_and_says_what_would_have_been_done() -> None:
    refusal = made(ActionMode.OFF)
    assert isinstance(refusal, Refusal) and "would have been done" in refusal.reason


def test_the_same_decision_is_the_same_action_and_a_second_try_is_another() -> None:
    assert action().action == action(ActionMode.APPROVE).action
    assert action().action != action(earlier=1).action


def test_an_action_is_stale_when_its_attempt_its_incident_or_its_run_is_over() -> None:
    one = action()
    verdict = Verdict(key="k", detector="rank_exit", fault=RANK_CRASH, run="r", attempt="r-5", reason="seen", onset=NOW)
    incident = first_transition(verdict, "i", NOW)
    assert stale(one, incident, run()) is None
    assert stale(one, incident, run(attempt(5, "ended"), attempt(6))) == "r-5 is no longer the current attempt"
    assert stale(one, incident, run(state="failed")) == "the run is over"
    assert stale(one, move(incident, State.RESOLVED, "", NOW, resolved_at=NOW), run()) == "the incident is resolved"
    assert stale(one, incident, None) == "the run is over"


def test_an_order_that_nobody_takes_up_expires_and_one_that_is_never_done_fails() -> None:
    one = action()
    assert expire(one, NOW + timedelta(seconds=120)) is None
    late = expire(one, NOW + timedelta(seconds=121))
    assert late and late.new_state == "expired"
    (accepted,) = answered(one, [Answer(action=one.action, code="accepted", at=NOW + timedelta(seconds=100), node="a", message="")], None)
    assert expire(accepted, NOW + timedelta(seconds=219)) is None
    never = expire(accepted, NOW + timedelta(seconds=221))
    assert never and never.new_state == "failed"


def test_answers_of_a_launcher_are_taken_in_order_and_once() -> None:
    one = action()

    def says(code: str, seconds: float) -> Answer:
        return Answer(action=one.action, code=code, at=NOW + timedelta(seconds=seconds), node="a", message="")

    states = [a.new_state for a in answered(one, [says("done", 2), says("accepted", 1), says("accepted", 1.5)], None)]
    assert states == ["accepted", "succeeded"]
    done = answered(one, [says("accepted", 1), says("done", 2)], None)[-1]
    assert answered(done, [says("failed", 3), says("accepted", 1)], None) == []
    (refused,) = answered(one, [says("refused", 1)], None)
    assert (refused.new_state, refused.reason, refused.actor) == ("failed", "refused: refused", "launcher:a")
    other = Answer(action="another", code="done", at=NOW, node="a", message="")
    assert answered(one, [other], None) == []


def test_of_several_launchers_a_spare_and_one_that_was_left_out_have_no_say() -> None:
    one = action()
    several = AttemptLook(run=one.run, attempt=one.attempt, launch=1, state="running", nodes=("a", "b"))
    refused = Answer(action=one.action, code="refused", at=NOW, node="c", message="it is for another attempt")
    assert answered(one, [refused], several) == []
    assert [a.new_state for a in answered(one, [refused, replace(refused, node="b")], several)] == ["failed"]


def test_an_effect_that_is_seen_settles_an_action_whose_answer_got_lost() -> None:
    one = action()
    assert settled_by_rows(one, run(), NOW) is None
    settled = settled_by_rows(one, run(attempt(5, "ended"), attempt(6, "starting")), NOW)
    assert settled and settled.new_state == "succeeded"


def test_a_new_leaders_term_is_put_on_the_same_action() -> None:
    one = action()
    again = renew(one, 4, NOW)
    assert (again.action, again.term, again.new_state, again.deadline) == (one.action, 4, "issued", one.deadline)
    assert again.at > one.at
