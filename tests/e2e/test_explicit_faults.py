"""A real small file system, filled and turned read-only under a real agent: found, paged and over again, by the whole of Surefoot."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.records import FindingTransition, IncidentTransition
from pipeline.secrets import ingest_token
from pipeline.store import Store
from surefoot.drill import stack as stacks
from surefoot.drill.pager import ROUTING_KEY, Pager
from surefoot.drill.stack import Stack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("nsenter"), reason="needs root and unshare"),
]
PATIENCE = 60.0  # seconds; a ceiling, not an expectation


@dataclass
class Node:
    """An agent in a mount namespace of its own, with 4 MB of real file system at `data`."""

    agent: subprocess.Popen[bytes]
    data: Path

    def there(self, *command: str) -> None:
        """Carry out a command in the agent's namespace."""
        done = subprocess.run(["nsenter", "-m", "-t", str(self.agent.pid), *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "No space left" in done.stderr, done.stderr


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
def node(stack: Stack, tmp_path: Path) -> Iterator[Node]:
    with agent_on(stack, tmp_path, 'mount -t tmpfs -o size=4m real "$1"') as made:
        yield made


@contextmanager
def agent_on(stack: Stack, tmp_path: Path, mounting: str) -> Iterator[Node]:
    """An agent in a mount namespace of its own, in which `mounting` has mounted something at "$1"."""
    data = tmp_path / "data"
    data.mkdir()
    ours = {
        "SUREFOOT_NODE": "node-b",
        "SUREFOOT_STATE_DIR": str(tmp_path / "agent"),
        "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
        "SUREFOOT_AGENT__INTERVAL": "1",
        "SUREFOOT_AGENT__PORT": str(stacks.free_ports(1)[0]),
        "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
    }
    agent = f'{mounting} && exec "{sys.executable}" -P -m surefoot --config "$2" agent'
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", agent, "sh", str(data), str(stack.config)]
    with (tmp_path / "agent.log").open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | ours, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield Node(process, data)
    finally:
        process.terminate()
        process.wait(60)


def findings(store: Store, node: Node) -> list[tuple[str, str]]:
    """Fault and state of what was found at the node's file system, in order."""
    rows = store.read(FindingTransition, "SELECT * FROM findings WHERE node = 'node-b' ORDER BY at")
    return [(row.fault, row.new_state) for row in rows if row.device == str(node.data)]


def wait_for(store: Store, node: Node, expected: list[tuple[str, str]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and findings(store, node) != expected:
        assert node.agent.poll() is None, "the agent ended"
        time.sleep(0.2)
    assert findings(store, node) == expected


def test_a_real_file_system_that_fills_and_one_that_turns_read_only_are_found_paged_and_over_again(
    stack: Stack, node: Node, pager: Pager
) -> None:
    store = Store.connect(stack.settings)
    deadline = time.monotonic() + PATIENCE
    seen = "SELECT count() AS n FROM mount WHERE node = 'node-b' AND read_only = 0"
    while time.monotonic() < deadline and not store.query(seen)[0]["n"]:
        time.sleep(0.2)

    node.there("dd", "if=/dev/zero", f"of={node.data}/big", "bs=1M", "count=8")
    full = [("filesystem_full", "open")]
    wait_for(store, node, full)
    node.there("rm", f"{node.data}/big")
    full += [("filesystem_full", "cleared")]
    wait_for(store, node, full)

    node.there("mount", "-o", "remount,ro", str(node.data))
    wait_for(store, node, [*full, ("filesystem_read_only", "open")])
    node.there("mount", "-o", "remount,rw", str(node.data))
    wait_for(store, node, [*full, ("filesystem_read_only", "open"), ("filesystem_read_only", "cleared")])

    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and len(pager.received) < 4:
        time.sleep(0.2)
    told = [(one.action, one.body.get("payload", {}).get("class")) for one in pager.received]
    assert [action for action, _ in told] == ["trigger", "resolve", "trigger", "resolve"]
    assert [fault for action, fault in told if action == "trigger"] == ["filesystem_full", "filesystem_read_only"]
    assert len({one.dedup_key for one in pager.received}) == 2
    texts = [one.body["payload"]["summary"] for one in pager.received if one.action == "trigger"]
    assert all(f"{node.data} on node-b" in text for text in texts), texts
    store.close()


FUSE = Path(__file__).parents[1] / "fakes/fuse_server.py"


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_a_real_fuse_file_system_that_stops_answering_is_one_incident_which_is_over_once_it_answers(
    stack: Stack, pager: Pager, tmp_path: Path
) -> None:
    store = Store.connect(stack.settings)
    orders = tmp_path / "orders"
    os.mkfifo(orders)
    told = os.open(orders, os.O_RDWR)  # the server ends, and with it what hangs, when nobody can give it orders any more
    serve = f'{{ "{sys.executable}" "{FUSE}" "$1" < "{orders}" >/dev/null & true; }}'
    try:
        with agent_on(stack, tmp_path, serve) as node:
            deadline = time.monotonic() + PATIENCE
            seen = "SELECT count() AS n FROM mount WHERE node = 'node-b' AND size = 4096000000 AND probe_ok = 1"
            while time.monotonic() < deadline and not store.query(seen)[0]["n"]:
                time.sleep(0.2)
            os.write(told, b"stop\n")
            wait_for(store, node, [("mount_hung", "open")])
            os.write(told, b"go\n")
            wait_for(store, node, [("mount_hung", "open"), ("mount_hung", "cleared")])
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline and len(pager.received) < 2:
                time.sleep(0.2)
    finally:
        os.close(told)
    assert [one.action for one in pager.received] == ["trigger", "resolve"]
    assert len({one.dedup_key for one in pager.received}) == 1
    payload = pager.received[0].body["payload"]
    assert (payload["class"], payload["severity"]) == ("mount_hung", "critical")
    assert f"{node.data} on node-b" in payload["summary"], payload["summary"]
    (incident,) = last_incidents(store)
    assert (incident.layer, incident.node, incident.device) == ("storage", "node-b", str(node.data))
    store.close()


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


def last_incidents(store: Store) -> list[IncidentTransition]:
    """The last word on each incident that is no part of another."""
    rows = store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
    return [i for i in {i.incident: i for i in rows}.values() if not i.merged_into]


def test_a_real_training_that_crashes_on_the_disk_that_it_fills_is_one_incident_with_the_disk_as_its_cause(
    stack: Stack, node: Node, tmp_path: Path
) -> None:
    store = Store.connect(stack.settings)
    (tmp_path / "train.py").write_text(TRAIN)
    ours = {"SUREFOOT_NODE": "node-b", "SUREFOOT_RING_DIR": str(tmp_path / "rings"), "SUREFOOT_STATE_DIR": str(tmp_path / "agent")}
    surefoot = [
        sys.executable,
        "-P",
        "-m",
        "surefoot",
        "--config",
        str(stack.config),
        "run",
        "--run-id",
        "r",
        "--checkpoints",
        str(node.data),
    ]
    words = ["nsenter", "-m", "-t", str(node.agent.pid), *surefoot, "--", sys.executable, str(tmp_path / "train.py"), f"{node.data}/ckpt"]
    with (tmp_path / "train.log").open("wb") as out:
        env = os.environ | ours | {"SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings)}
        launcher = subprocess.Popen(words, env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not any(i.recovered_at and i.fault == "filesystem_full" for i in last_incidents(store)):
            time.sleep(0.2)
        (one,) = last_incidents(store)
        assert "No space left on device" in (tmp_path / "train.log").read_text()
        assert (one.fault, one.run, one.attempt, one.device) == ("filesystem_full", "r", "r-1", str(node.data))
        node.there("rm", f"{node.data}/ckpt")
        while time.monotonic() < deadline and last_incidents(store)[0].new_state != "resolved":
            time.sleep(0.2)
        (one,) = last_incidents(store)
        assert (one.new_state, one.recovered_at is not None) == ("resolved", True)
    finally:
        launcher.terminate()
        launcher.wait(30)
        store.close()
