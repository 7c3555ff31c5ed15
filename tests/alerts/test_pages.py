"""What a page says: an engineer's first questions, answered in the order in which they are asked. Figures worked out by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.incidents.lifecycle import State, move
from alerts.page_facts import Facts
from alerts.pages import STOPPED, alerts_due, events_due, notification_id, page
from alerts.words import clock, duration, gpu_time, gpus, percent
from pipeline.catalog.layers import Category
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition
from pipeline.settings import ConsoleSettings

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
CONSOLE = ConsoleSettings(url="https://surefoot.example")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def incident(**changes: Any) -> IncidentTransition:
    usual: dict[str, Any] = {
        **{"old_state": "", "new_state": "open", "reason": "rank 1 was killed by SIGKILL", "actor": "leader", "at": at(0.4)},
        **{"incident": "5f0c", "key": "k", "fault": "rank_crash", "layer": "framework", "severity": "critical"},
        **{"title": "A rank's process died: rank 1 on node-a, run r", "run": "r", "attempt": "r-1", "node": "node-a", "rank": 1},
        **{"onset": T0, "detected_at": at(0.4), "located_at": at(0.4)},
    }
    return IncidentTransition(**(usual | changes))


def action(state: str = "issued", kind: str = "restart_run", seconds: float = 0.5, **changes: Any) -> ActionTransition:
    usual: dict[str, Any] = {"old_state": "", "new_state": state, "reason": "a rank died", "actor": "leader", "at": at(seconds)}
    usual |= {"action": "a1", "key": "k", "kind": kind, "mode": "auto", "term": 1, "incident": "5f0c", "run": "r", "attempt": "r-1"}
    return ActionTransition(**(usual | {"deadline": at(seconds + 120)} | changes))


def finding(fault: str = "rank_crash", reason: str = "rank 1 was killed by SIGKILL") -> FindingTransition:
    return FindingTransition(
        **{"old_state": "", "new_state": "open", "reason": reason, "actor": "d", "at": T0, "finding": "f", "key": "k"},
        **{"detector": "rank_exit", "fault": fault, "layer": "framework", "severity": "critical"},
    )


def facts(**changes: Any) -> Facts:
    usual: dict[str, Any] = {"console": CONSOLE, "findings": (finding(),), "actions": (action(),), "gpus": 256, "began_at": at(-3600)}
    return Facts(**(usual | {"checkpoint_at": at(-900), "checkpoint_step": "41000"} | changes))


def test_a_trigger_answers_what_where_since_when_at_what_price_what_is_done_and_what_is_at_risk() -> None:
    """256 GPUs x 0.5 s = 128 GPU-seconds; 256 x 900 s = 230,400 GPU-seconds = 64 GPU-hours."""
    told = page(incident(), "trigger", facts(), at(0.5))
    assert told.summary == (
        "A rank's process died: rank 1 on node-a, run r. "
        "Since 12:00:00 UTC (0.5 s): 256 GPUs idle now, 128 GPU-seconds lost so far. "
        "Surefoot: ordered at 12:00:00 UTC to restart the run in place from its last complete checkpoint, to be taken up by 12:02:00 UTC. "
        "Last complete checkpoint 15 min 00 s ago (step 41000): 64.0 GPU-hours of work at risk."
    )
    assert len(told.summary) <= 1024
    assert list(told.details)[:8] == ["what", "where", "since", "surefoot", "checkpoint", "confidence", "runbook", "run"]
    assert told.details["where"] == "node node-a, rank 1"
    assert told.details["confidence"] == "100 %"
    assert told.details["runbook"] == "https://surefoot.example/runbook?fault=rank_crash"
    assert told.details["found"] == "rank_exit: rank 1 was killed by SIGKILL"
    assert told.links == (
        ("Incident", "https://surefoot.example/incident?incident=5f0c"),
        ("Run", "https://surefoot.example/run?run=r"),
        ("Runbook", "https://surefoot.example/runbook?fault=rank_crash"),
    )


def test_runbooks_that_are_kept_elsewhere_are_linked_there() -> None:
    there = ConsoleSettings(runbooks="https://git.example/surefoot/docs/runbooks/")
    told = page(incident(), "trigger", facts(console=there), at(1))
    assert told.links[-1] == ("Runbook", "https://git.example/surefoot/docs/runbooks/rank_crash.md")


def test_what_waits_for_a_person_says_what_to_press() -> None:
    told = page(incident(), "trigger", facts(actions=(action("waiting", deadline=None),)), at(1))
    assert (
        "Surefoot: waits for you: press Approve on the incident's page to restart the run in place from its last complete "
        "checkpoint. Nothing is done until then."
    ) in told.summary


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"actions": (action("accepted"),)}, "the launcher took it up at 12:00:00 UTC"),
        ({"actions": (action("dry_run"),)}, "dry run, nothing is done; it would restart the run in place"),
        (
            {"actions": (action("expired", seconds=121, reason="no launcher took it up"),)},
            "expired at 12:02:01 UTC: no launcher took it up",
        ),
        ({"actions": ()}, "Surefoot: has done nothing yet."),
        ({"actions": (action("failed"), action("issued", seconds=9))}, "ordered at 12:00:09 UTC"),
        (
            {"actions": (), "paused": "acting is paused by ann: net"},
            "does nothing: acting is paused by ann: net (to go on: surefoot actions resume).",
        ),
        (
            {"paused": "acting is paused by ann: net"},
            "; no further action: acting is paused by ann: net (to go on: surefoot actions resume).",
        ),
    ],
)
def test_what_surefoot_does_is_said_as_it_stands(changes: dict[str, Any], said: str) -> None:
    assert said in page(incident(), "trigger", facts(**changes), at(1)).summary


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("host_down", "to restart the run without node-a from its last complete checkpoint"),
        ("node_left", "to restart the run on the nodes whose launchers are ready, from its last complete checkpoint"),
    ],
)
def test_a_restart_without_a_node_is_not_called_one_in_place(fault: str, said: str) -> None:
    assert said in page(incident(fault=fault), "trigger", facts(), at(1)).summary


def test_a_refusal_is_told_with_its_reason_and_a_mere_warning_says_that_nobody_is_idle() -> None:
    refused = page(incident(reason="no action: 2 actions on r-1 came to nothing"), "trigger", facts(actions=()), at(1))
    assert "Surefoot: does nothing: 2 actions on r-1 came to nothing." in refused.summary
    quiet = incident(fault="telemetry_lost", rank=None, title="A node's agent is silent: node-a, run r")
    told = page(quiet, "trigger", facts(actions=()), at(60))
    assert "the run may well go on, no GPU is known to be idle" in told.summary
    assert "Surefoot: does nothing about this by itself; somebody has to look." in told.summary
    assert "Last complete checkpoint 16 min 00 s ago (step 41000): 68.3 GPU-hours of work at risk." in told.summary  # 256 x 960 s


def test_a_refusal_after_an_action_is_what_counts_and_a_doubt_is_told() -> None:
    doubtful = incident(reason="no action: 2 actions on r-1 came to nothing", at=at(300), confidence=0.666)
    told = page(doubtful, "trigger", facts(actions=(action("expired", seconds=121),)), at(300))
    assert told.summary.startswith("A rank's process died: rank 1 on node-a, run r (66 % sure). ")
    assert "Surefoot: does nothing: 2 actions on r-1 came to nothing." in told.summary


def test_what_is_not_known_is_said_to_be_unknown_and_never_nought() -> None:
    told = page(incident(), "trigger", facts(gpus=None, checkpoint_at=None, checkpoint_step="", began_at=None), at(1))
    assert "all GPUs of the run are idle, how many is not known yet" in told.summary
    assert "No complete checkpoint yet: all work of the run is at risk." in told.summary
    without_run = page(incident(run="", attempt="", rank=None, fault="host_down"), "trigger", Facts(console=CONSOLE), at(1))
    assert "Since 12:00:00 UTC (1.0 s)." in without_run.summary
    assert "checkpoint" not in without_run.summary
    assert [label for label, _ in without_run.links] == ["Incident", "Runbook"]


def test_a_first_hour_without_a_checkpoint_puts_all_of_it_at_risk() -> None:
    """256 GPUs x 3600 s = 256 GPU-hours."""
    told = page(incident(), "trigger", facts(checkpoint_at=None, checkpoint_step=""), at(0.5))
    assert "No complete checkpoint yet: 256 GPU-hours of work at risk." in told.summary


def test_an_acknowledgement_says_who_and_a_resolve_how_long_and_at_what_cost() -> None:
    known = move(incident(), State.OPEN, "on it", at(60), actor="ann", acknowledged_by="ann")
    told = page(known, "acknowledge", facts(actions=(action("accepted", seconds=2),)), at(60))
    assert told.summary.startswith("Acknowledged by ann: A rank's process died: rank 1 on node-a, run r. Since 12:00:00 UTC (1 min 00 s): ")
    assert told.details["acknowledged"] == "ann"
    over = replace(known, new_state="resolved", reason="recovered: attempt r-2 makes progress", recovered_at=at(80), resolved_at=at(81))
    spent = {Category.DETECT: 100.0, Category.RESTART: 20380.0, Category.LOST_PROGRESS: 230_400.0}
    told = page(over, "resolve", facts(actions=(action("succeeded", seconds=75),), spent=spent), at(82))
    assert told.summary == (
        "Resolved after 1 min 21 s: A rank's process died: rank 1 on node-a, run r. Recovered: attempt r-2 makes progress. "
        "Surefoot: restarted the run in place from its last complete checkpoint, done at 12:01:15 UTC. "
        "Lost 69.7 GPU-h: 5.7 restart, 64.0 lost progress."
    )
    assert told.details["since"] == "from 12:00:00 UTC to 12:01:21 UTC (1 min 21 s): 69.7 GPU-hours lost"
    assert "checkpoint" not in told.details, "its work is not at risk any more"
    assert told.details["done"] == "restart_run succeeded (a rank died)"


def test_a_resolve_before_the_ledger_has_reached_it_counts_by_the_clock() -> None:
    """256 GPUs from onset to the first step, 8 s: 2,048 GPU-seconds."""
    over = incident(new_state="resolved", reason="recovered", recovered_at=at(8), resolved_at=at(8.5))
    said = page(over, "resolve", facts(spent={Category.DETECT: 100.0}), at(9)).summary
    assert "2,048 GPU-seconds lost waiting, and the work since the checkpoint that it went back to." in said


def test_a_run_that_is_not_restarted_any_more_reads_as_one() -> None:
    why = "same failure 4 times in 1 h: rank_crash at rank 1 on node-a or at the same step"
    loop = incident(fault="restart_loop", layer="scheduler")
    ending = action("issued", "end_run", reason=why)
    told = page(loop, "trigger", facts(actions=(ending,), findings=(finding(), finding("restart_loop", why))), at(1), STOPPED)
    assert told.summary.startswith(f"Stopped: {why}; run r is not restarted any more. Since 12:00:00 UTC (1.0 s): 256 GPUs idle now")
    assert "to let the run end" in told.summary
    assert told.dedup_key == "5f0c:stopped"


def test_a_loop_is_an_alert_of_its_own_for_who_was_told_of_a_restart_before() -> None:
    assert alerts_due(incident(), told=True) == alerts_due(incident(), told=False) == ("",)
    loop = incident(fault="restart_loop")
    assert alerts_due(loop, told=False) == (":stopped",)
    assert alerts_due(loop, told=True) == ("", ":stopped")
    assert notification_id("i", "trigger", "pager", ":stopped") == "i:stopped:trigger:pager"


def test_the_events_due_follow_the_incident() -> None:
    assert events_due(incident()) == ("trigger",)
    known = move(incident(), State.OPEN, "", at(1), acknowledged_by="ann")
    assert events_due(known) == ("trigger", "acknowledge")
    assert events_due(move(known, State.RESOLVED, "", at(2), resolved_at=at(2))) == ("trigger", "acknowledge", "resolve")


def test_a_page_about_very_many_findings_tells_twenty_and_counts_the_rest() -> None:
    told = page(incident(), "trigger", facts(findings=[finding() for _ in range(500)]), at(1))
    assert told.details["found"].count("rank_exit") == 20
    assert told.details["found"].endswith("; and 480 more")


def test_words() -> None:
    assert [duration(s) for s in (-1, 0.44, 41.4, 200, 7500, 3 * 86400 + 4 * 3600)] == [
        *("0.0 s", "0.4 s", "41 s", "3 min 20 s", "2 h 05 min", "3 d 4 h")
    ]
    assert [gpu_time(s) for s in (1.4, 3599, 3600, 45_000, 3_600_000)] == [
        *("1.4 GPU-seconds", "3,599 GPU-seconds", "1.0 GPU-hours", "12.5 GPU-hours", "1,000 GPU-hours")
    ]
    assert [gpus(n) for n in (0, 1, 1024)] == ["no GPU", "1 GPU", "1,024 GPUs"]
    assert [percent(r) for r in (1.0, 0.999, 0.5)] == ["100 %", "99 %", "50 %"]
    assert clock(T0 - timedelta(days=1), T0) == "2026-11-29 12:00:00 UTC"


# --- many nodes ------------------------------------------------------------------------------


def of_switch(**changes: Any) -> IncidentTransition:
    usual = {"run": "", "attempt": "", "node": "", "rank": None, "device": "switch leaf-01", "fault": "mount_hung", "layer": "storage"}
    title = "A file system does not answer: /data on 50 of 50 nodes under switch leaf-01"
    return incident(**(usual | {"title": title, "reason": "/data has not answered for 12 s"} | changes))


def hung(number: int) -> FindingTransition:
    return replace(
        finding("mount_hung", "/data has not answered for 12 s"), detector="fault_rule", node=f"gpu-{number:03d}", device="/data"
    )


def test_a_page_about_many_nodes_names_what_they_share_the_count_the_nodes_and_the_runs_there() -> None:
    names = [f"gpu-{n:03d}" for n in range(1, 51)]
    many = facts(findings=[hung(n) for n in range(50, 0, -1)], actions=(), nodes=names, runs=["a", "b", "c", "d", "e"])
    told = page(of_switch(), "trigger", many, at(11))
    assert told.summary == (
        "A file system does not answer: /data on 50 of 50 nodes under switch leaf-01. Since 12:00:00 UTC (11 s). "
        "Runs there: a, b, c and 2 more. Surefoot: does nothing about this by itself; somebody has to look."
    )
    assert (told.source, told.component, told.group) == ("switch leaf-01", "switch leaf-01", "")
    assert told.details["where"] == "nodes gpu-[001-050], switch leaf-01"
    assert told.details["runs there"] == "a, b, c, d, e"
    assert told.details["found"].startswith("gpu-001: /data has not answered for 12 s; gpu-002: ")
    assert told.details["found"].endswith("; and 30 more")
    assert told.details["advice"] == "exclude the node if it is one, page storage if it is many"


def test_nodes_without_an_order_are_named_one_by_one_and_the_rest_counted() -> None:
    names = sorted(f"{'x' * 30}-{n * 7919 % 10007}" for n in range(50))
    told = page(of_switch(), "trigger", facts(findings=(), actions=(), nodes=names), at(11))
    assert told.details["where"].count("x" * 30) == 10
    assert " and 40 more, switch leaf-01" in told.details["where"]


def test_what_turned_out_to_be_part_of_a_larger_incident_is_not_said_to_be_over() -> None:
    merged = of_switch(
        **{"node": "gpu-012", "device": "/data", "title": "A file system does not answer: /data on gpu-012", "new_state": "resolved"},
        **{"reason": "the same as incident 77: /data on 4 of 50 nodes under switch leaf-01", "resolved_at": at(16), "merged_into": "77"},
    )
    told = page(merged, "resolve", facts(findings=(), actions=(), nodes=["gpu-012"]), at(16))
    assert told.summary == (
        "Not over, but part of a larger incident now: A file system does not answer: /data on gpu-012. "
        "The same as incident 77: /data on 4 of 50 nodes under switch leaf-01. Its own alert goes on."
    )
    assert told.links[0] == ("Incident", "https://surefoot.example/incident?incident=77")
    assert told.dedup_key == "5f0c", "the alert that is closed is its own"
