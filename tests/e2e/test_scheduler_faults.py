"""What a scheduler says, through the whole of Surefoot: an unfit node, a requeued job and a waiting one are found, paged, over again."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import FindingTransition

pytestmark = pytest.mark.slow
SCONTROL = """#!/bin/sh
case "$*" in
*--json*) exit 1 ;;
"-o show nodes") cat "{at}/nodes" ;;
"-o show jobs") cat "{at}/jobs" ;;
esac
"""


@dataclass
class Scheduler:
    """A `scontrol` that says what the test tells it to."""

    at: Path

    def nodes(self, **states: str) -> None:
        self._say("nodes", "".join(f"NodeName={name} State={state} CfgTRES=gres/gpu=8 AllocTRES=\n" for name, state in states.items()))

    def jobs(self, *lines: str) -> None:
        self._say("jobs", "".join(line + "\n" for line in lines))

    def _say(self, name: str, text: str) -> None:
        (self.at / f".{name}").write_text(text)
        (self.at / f".{name}").rename(self.at / name)


@pytest.fixture
def scheduler(start_agent: Any, tmp_path: Path) -> Scheduler:
    """The agent of node "watcher" asks it of the cluster, at a quick pace."""
    made = Scheduler(tmp_path / "slurm")
    made.at.mkdir()
    (made.at / "scontrol").write_text(SCONTROL.format(at=made.at))
    (made.at / "scontrol").chmod(0o755)
    made.nodes(gpu2="IDLE", watcher="MIXED")
    made.jobs("JobId=41 JobName=a JobState=RUNNING Restarts=0 NodeList=watcher SubmitTime=1")
    asked = {"SUREFOOT_AGENT__SCHEDULERS": '["slurm-cluster"]', "SUREFOOT_AGENT__SLURM__SCONTROL": str(made.at / "scontrol")}
    start_agent("watcher", SUREFOOT_AGENT__INTERVAL="1", **asked)
    return made


def until_found(seen: Any, *expected: tuple[str, str, str, str]) -> None:
    """Waits for findings that are `expected`: fault, state, node and device, in any order."""

    def found() -> set[tuple[str, str, str, str]]:
        rows = seen.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")
        return {(row.fault, row.new_state, row.node, row.device) for row in rows}

    seen.until(lambda: set(expected) <= found(), found)


def test_an_unfit_node_a_requeued_job_and_one_that_waits_are_found_paged_and_over_again(scheduler: Scheduler, seen: Any) -> None:
    seen.until(lambda: seen.count("sched_node WHERE ready = 1") >= 4)

    scheduler.nodes(gpu2="DOWN*", watcher="MIXED")
    until_found(seen, ("node_not_ready", "open", "gpu2", ""))
    scheduler.nodes(gpu2="IDLE", watcher="MIXED")
    until_found(seen, ("node_not_ready", "cleared", "gpu2", ""))

    scheduler.jobs(f"JobId=41 JobName=a JobState=PENDING Restarts=1 NodeList= SubmitTime={time.time() - 55:.0f} Reason=Resources")
    until_found(seen, ("preempted_or_evicted", "open", "watcher", "41"), ("pending_capacity", "open", "watcher", "41"))
    scheduler.jobs("JobId=41 JobName=a JobState=RUNNING Restarts=1 NodeList=watcher SubmitTime=1")
    until_found(seen, ("preempted_or_evicted", "cleared", "watcher", "41"), ("pending_capacity", "cleared", "watcher", "41"))

    rows = seen.store.read(FindingTransition, "SELECT * FROM findings WHERE new_state = 'open' ORDER BY at")
    assert sorted(row.fault for row in rows) == ["node_not_ready", "pending_capacity", "preempted_or_evicted"]
    triggered = [one.body["payload"]["class"] for one in seen.pager.received if one.action == "trigger"]
    assert "node_not_ready" in triggered and len(triggered) == len(set(triggered))
