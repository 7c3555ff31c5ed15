"""A real small file system, filled and turned read-only under a real agent: found, paged and over again, by the whole of Surefoot."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import utcnow
from pipeline.records import FindingTransition
from surefoot.drill.stack import Stack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("nsenter"), reason="needs root and unshare"),
]


@dataclass
class Node:
    """An agent in a mount namespace of its own, with something mounted at `data`."""

    agent: "subprocess.Popen[bytes]"
    data: Path
    seen: Any

    def there(self, *command: str) -> None:
        """Carry out a command in the agent's namespace."""
        done = subprocess.run(["nsenter", "-m", "-t", str(self.agent.pid), *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "No space left" in done.stderr, done.stderr

    def found(self) -> list[tuple[str, str]]:
        """Fault and state of what was found at `data`, in order."""
        rows = self.seen.store.read(FindingTransition, "SELECT * FROM findings WHERE node = 'node-b' ORDER BY at")
        return [(row.fault, row.new_state) for row in rows if row.device == str(self.data)]

    def until_found(self, *expected: tuple[str, str]) -> None:
        """Waits until what was found is `expected`."""
        self.seen.until(lambda: self.agent.poll() is not None or self.found() == [*expected], self.found)
        assert self.agent.poll() is None, "the agent ended"


@pytest.fixture
def node_with(start_agent: Any, seen: Any, tmp_path: Path) -> Callable[[str], Node]:
    """Starts node-b, at the pace of every agent, where the words of a shell have mounted something at "$1"."""

    def start(mounting: str) -> Node:
        data = tmp_path / "data"
        data.mkdir()
        within = ("unshare", "-m", "--propagation", "private", "sh", "-c", f'{mounting} && shift && exec "$@"', "sh", str(data))
        return Node(start_agent("node-b", within=within), data, seen)

    return start


@pytest.fixture
def node(node_with: Callable[[str], Node]) -> Node:
    """node-b with 4 MB of real file system."""
    return node_with('mount -t tmpfs -o size=4m real "$1"')


def test_a_real_file_system_that_fills_and_one_that_turns_read_only_are_found_paged_and_over_again(node: Node, seen: Any) -> None:
    seen.until(lambda: seen.count("mount WHERE node = 'node-b' AND size = 4194304 AND read_only = 0"))

    began = utcnow()
    node.there("dd", "if=/dev/zero", f"of={node.data}/big", "bs=1M", "count=8")
    full = seen.paged("filesystem_full", "node-b", began)
    node.there("rm", f"{node.data}/big")
    node.until_found(("filesystem_full", "open"), ("filesystem_full", "cleared"))
    seen.over(full)

    began = utcnow()
    node.there("mount", "-o", "remount,ro", str(node.data))
    read_only = seen.paged("filesystem_read_only", "node-b", began)
    node.there("mount", "-o", "remount,rw", str(node.data))
    seen.over(read_only)

    assert [i.fault for i in seen.incidents("node-b")] == ["filesystem_full", "filesystem_read_only"]
    for incident in seen.incidents("node-b"):
        assert (incident.layer, incident.device) == ("storage", str(node.data))
        assert f"{node.data} on node-b" in seen.told(incident)[0].body["payload"]["summary"]


FUSE = Path(__file__).parents[1] / "fakes/fuse_server.py"


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_a_real_fuse_file_system_that_stops_answering_is_one_incident_which_is_over_once_it_answers(
    node_with: Callable[[str], Node], seen: Any, tmp_path: Path
) -> None:
    orders = tmp_path / "orders"
    os.mkfifo(orders)
    told = os.open(orders, os.O_RDWR)  # the server ends, and with it what hangs, when nobody can give it orders any more
    try:
        node = node_with(f'{{ "{sys.executable}" "{FUSE}" "$1" < "{orders}" >/dev/null & true; }}')
        seen.until(lambda: seen.count("mount WHERE node = 'node-b' AND size = 4096000000 AND probe_ok = 1"))
        began = utcnow()
        os.write(told, b"stop\n")
        hung = seen.paged("mount_hung", "node-b", began)
        os.write(told, b"go\n")
        seen.over(hung)
        node.until_found(("mount_hung", "open"), ("mount_hung", "cleared"))
    finally:
        os.close(told)
    (hung,) = seen.incidents("node-b")
    assert (hung.layer, hung.device, hung.severity) == ("storage", str(node.data), "critical")
    assert f"{node.data} on node-b" in seen.told(hung)[0].body["payload"]["summary"]


TRAIN = """
import os, sys, time
from surefoot import StepMonitor
from surefoot.hook.layout import ENV_ATTEMPT
monitor, first = StepMonitor(), os.environ[ENV_ATTEMPT].endswith("-1")
for n in range(160 if first else 300):
    with monitor.step(n):
        time.sleep(0.05)
    if first and n % 20 == 19:
        with monitor.phase("checkpoint"), open(sys.argv[1], "ab", buffering=0) as checkpoint:
            while checkpoint.write(bytes(1 << 20)):
                pass
"""


def test_a_real_training_that_crashes_on_the_disk_that_it_fills_is_one_incident_with_the_disk_as_its_cause(
    stack: Stack, node: Node, seen: Any, start_launcher: Any, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    training = [sys.executable, str(tmp_path / "train.py"), f"{node.data}/ckpt"]
    words = ("--run-id", "r", "--checkpoints", str(node.data), "--", *training)
    launcher = start_launcher(stack, "node-b", *words, within=("nsenter", "-m", "-t", str(node.agent.pid)))
    try:
        seen.until(lambda: any(i.recovered_at and i.fault == "filesystem_full" for i in seen.incidents()), seen.incidents)
        (one,) = seen.incidents()
        assert "No space left on device" in (tmp_path / "node-b.log").read_text()
        assert (one.fault, one.run, one.attempt, one.device) == ("filesystem_full", "r", "r-1", str(node.data))
        node.there("rm", f"{node.data}/ckpt")
        seen.until(lambda: seen.incidents()[0].new_state == "resolved", seen.incidents)
        (one,) = seen.incidents()
        assert one.recovered_at is not None
    finally:
        launcher.terminate()
        launcher.wait(30)
