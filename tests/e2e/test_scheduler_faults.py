"""What a scheduler says, through the whole of Surefoot: an unfit node, a requeued job and a waiting one are found, paged, over again."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.records import FindingTransition
from pipeline.secrets import ingest_token
from pipeline.store import Store
from surefoot.drill import stack as stacks
from surefoot.drill.pager import ROUTING_KEY, Pager
from surefoot.drill.stack import Stack

pytestmark = pytest.mark.slow
PATIENCE = 90.0  # seconds; a ceiling, not an expectation
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
def pager() -> Iterator[Pager]:
    made = Pager()
    yield made
    made.close()


@pytest.fixture
def stack(tmp_path: Path, pager: Pager) -> Iterator[Stack]:
    told = [{"kind": "pagerduty", "name": "pager", "key": ROUTING_KEY, "url": pager.url}]
    started = stacks.start(tmp_path / "stack", {"receivers": told})
    yield started
    started.stop()


@pytest.fixture
def scheduler(stack: Stack, tmp_path: Path) -> Iterator[Scheduler]:
    made = Scheduler(tmp_path / "slurm")
    made.at.mkdir()
    (made.at / "scontrol").write_text(SCONTROL.format(at=made.at))
    (made.at / "scontrol").chmod(0o755)
    made.nodes(gpu2="IDLE", watcher="MIXED")
    made.jobs("JobId=41 JobName=a JobState=RUNNING Restarts=0 NodeList=watcher SubmitTime=1")
    ours = {
        "SUREFOOT_NODE": "watcher",
        "SUREFOOT_STATE_DIR": str(tmp_path / "agent"),
        "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
        "SUREFOOT_AGENT__INTERVAL": "1",
        "SUREFOOT_AGENT__PORT": str(stacks.free_ports(1)[0]),
        "SUREFOOT_AGENT__SCHEDULERS": '["slurm-cluster"]',
        "SUREFOOT_AGENT__SLURM__SCONTROL": str(made.at / "scontrol"),
        "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
    }
    command = [sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "agent"]
    with (tmp_path / "agent.log").open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | ours, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield made
    finally:
        process.terminate()
        process.wait(60)


def wait_for(store: Store, *expected: tuple[str, str, str, str]) -> None:
    """Waits for findings that are `expected`: fault, state, node and device, in any order."""
    deadline, found = time.monotonic() + PATIENCE, set[tuple[str, str, str, str]]()
    while time.monotonic() < deadline and not set(expected) <= found:
        rows = store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")
        found = {(row.fault, row.new_state, row.node, row.device) for row in rows}
        time.sleep(0.2)
    assert set(expected) <= found, found


def test_an_unfit_node_a_requeued_job_and_one_that_waits_are_found_paged_and_over_again(
    stack: Stack, scheduler: Scheduler, pager: Pager
) -> None:
    store = Store.connect(stack.settings)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and store.query("SELECT count() AS n FROM sched_node WHERE ready = 1")[0]["n"] < 4:
        time.sleep(0.2)

    scheduler.nodes(gpu2="DOWN*", watcher="MIXED")
    wait_for(store, ("node_not_ready", "open", "gpu2", ""))
    scheduler.nodes(gpu2="IDLE", watcher="MIXED")
    wait_for(store, ("node_not_ready", "cleared", "gpu2", ""))

    scheduler.jobs(f"JobId=41 JobName=a JobState=PENDING Restarts=1 NodeList= SubmitTime={time.time() - 55:.0f} Reason=Resources")
    wait_for(store, ("preempted_or_evicted", "open", "watcher", "41"), ("pending_capacity", "open", "watcher", "41"))
    scheduler.jobs("JobId=41 JobName=a JobState=RUNNING Restarts=1 NodeList=watcher SubmitTime=1")
    wait_for(store, ("preempted_or_evicted", "cleared", "watcher", "41"), ("pending_capacity", "cleared", "watcher", "41"))

    rows = store.read(FindingTransition, "SELECT * FROM findings WHERE new_state = 'open' ORDER BY at")
    assert sorted(row.fault for row in rows) == ["node_not_ready", "pending_capacity", "preempted_or_evicted"]
    triggered = [one.body["payload"]["class"] for one in pager.received if one.action == "trigger"]
    assert "node_not_ready" in triggered and len(triggered) == len(set(triggered))
    store.close()
