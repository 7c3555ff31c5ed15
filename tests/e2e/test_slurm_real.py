"""A real Slurm on this machine, read as the agent reads it: a job that is preempted, a node that is taken down."""

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

import pytest

from exporters.collector import Observation, Reading, Site
from exporters.scheduler.slurm import SlurmWatch
from pipeline.catalog.metrics import SCHED_NODE
from pipeline.records import Event
from pipeline.settings import AgentSettings, SlurmSettings
from surefoot.drill.stack import free_ports

NEEDED = ("slurmctld", "slurmd", "scontrol", "sbatch", "munged")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="needs Debian's slurm-wlm and munge"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root"),
]
LIMIT = 60.0  # seconds that anything may take
HOST = socket.gethostname().partition(".")[0]
CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.sock
SlurmctldPort={ctld}
SlurmdPort={slurmd}
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/ctld.pid
SlurmdPidFile={at}/slurmd.pid
SlurmctldLogFile={at}/ctld.log
SlurmdLogFile={at}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=0
MpiDefault=none
SelectType=select/cons_tres
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=10
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES State=UP PriorityTier=1
PartitionName=high Nodes=ALL State=UP PriorityTier=10 PreemptMode=off
"""


@dataclass(frozen=True)
class Cluster:
    """A Slurm of one node in a folder of its own."""

    at: Path
    environ: dict[str, str]

    def run(self, *command: str) -> str:
        return subprocess.run(command, env=self.environ, check=True, capture_output=True, text=True, timeout=LIMIT).stdout.strip()

    def pid(self, name: str) -> int:
        return int((self.at / f"{name}.pid").read_text())

    def end(self, name: str) -> None:
        """Ends one of the daemons, if it is there."""
        try:
            pid = self.pid(name)
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not (state := Path(f"/proc/{pid}/stat")).exists() or ") Z " in state.read_text())
        except (OSError, ValueError):
            return

    def watch(self, whole: bool = True) -> SlurmWatch:
        """A watch that asks this cluster: `scontrol` by way of a file that names its configuration."""
        script = self.at / "scontrol"
        script.write_text(f'#!/bin/sh\nSLURM_CONF={self.at}/slurm.conf exec scontrol "$@"\n')
        script.chmod(0o755)
        return SlurmWatch(Site(HOST.lower(), settings=AgentSettings(timeout=30, slurm=SlurmSettings(scontrol=str(script)))), whole)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    at = Path(mkdtemp(prefix="sl", dir="/tmp"))
    at.chmod(0o755)
    for name in ("state", "spool"):
        (at / name).mkdir()
    ctld, slurmd = free_ports(2)
    (at / "slurm.conf").write_text(CONF.format(host=HOST, at=at, ctld=ctld, slurmd=slurmd))
    (at / "key").write_bytes(os.urandom(1024))
    (at / "key").chmod(0o600)
    one = Cluster(at, {**os.environ, "SLURM_CONF": str(at / "slurm.conf")})
    files = [f"--{name}={at}/{file}" for name, file in {"key-file": "key", "socket": "munge.sock", "log-file": "munged.log"}.items()]
    one.run("munged", "--force", *files, f"--pid-file={at}/munged.pid", f"--seed-file={at}/seed")
    one.run("slurmctld", "-c")
    one.run("slurmd")
    yield one
    for name in ("slurmd", "ctld", "munged"):
        one.end(name)
    shutil.rmtree(at, ignore_errors=True)


def wait_for(what: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(int(LIMIT / 0.5)):
        if what():
            return
        pause.wait(0.5)
    raise AssertionError("it did not come in time")


def look(watch: SlurmWatch) -> list[Observation]:
    return list(watch.look(datetime.now(UTC)))


def node_of(found: list[Observation]) -> Reading | None:
    return next((one for one in found if isinstance(one, Reading) and one.family is SCHED_NODE), None)


def job_of(found: list[Observation], job: str) -> Reading | None:
    return next((one for one in found if isinstance(one, Reading) and one.identity.get("job") == job), None)


def test_a_preempted_job_and_a_node_that_is_taken_down_are_seen_in_slurms_own_words(cluster: Cluster) -> None:
    watch, here = cluster.watch(), cluster.watch(whole=False)
    wait_for(lambda: (found := node_of(look(watch))) and found.values["sched_node.schedulable"] == 1)

    options = ("sbatch", "--parsable", "-n2", "-o/dev/null", "--wrap=sleep 600")
    low = cluster.run(*options, "-p", "low", "--requeue", "--comment=surefoot:run=r1")
    wait_for(lambda: (found := job_of(look(watch), low)) and found.values["sched_job.running"] == 1)
    running = job_of(look(watch), low)
    assert running and running.attributes == {"run": "r1"} and running.values["sched_job.nodes"] == 1
    mine = node_of(look(here))
    assert mine and mine.values["sched_node.ready"] == 1, "a node finds itself"

    high = cluster.run(*options, "-p", "high")
    told: list[Event] = []
    wait_for(lambda: told.extend(one for one in look(watch) if isinstance(one, Event) and one.kind == "place_lost") or told)
    (lost,) = told
    assert (lost.run, lost.attrs["job"], lost.node) == ("r1", low, HOST.lower()) and lost.code in ("preempted", "requeued")
    wait_for(lambda: (found := job_of(look(watch), high)) and found.values["sched_job.running"] == 1)
    wait_for(lambda: (found := job_of(look(watch), low)) and (found.values["sched_job.waiting"] or 0) > 0)
    waiting = job_of(look(watch), low)
    assert waiting and waiting.values["sched_job.starts"] == 1

    cluster.run("scontrol", "update", f"nodename={HOST}", "state=down", "reason=test = by hand")
    events: list[Event] = []
    wait_for(lambda: events.extend(one for one in look(watch) if isinstance(one, Event) and one.kind == "node_condition") or events)
    assert (events[0].node, events[0].code, events[0].attrs["state"]) == (HOST.lower(), "DOWN", "began")
    assert events[0].message.startswith("test = by hand")
    for asked in (watch, here):
        down = node_of(look(asked))
        assert down and (down.values["sched_node.ready"], down.values["sched_node.schedulable"]) == (0, 0)
