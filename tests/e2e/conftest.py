"""Drills as a person calls them, and what they must not leave behind; a whole Surefoot with a pager, and agents of other nodes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import IncidentTransition
from pipeline.secrets import ingest_token
from pipeline.store import Store
from surefoot.drill import stack as stacks
from surefoot.drill.pager import ROUTING_KEY, Pager, Received
from surefoot.drill.stack import Stack

STEPS = {"disk-full": 160, "read-only": 160}  # of the training; else 110
PATIENCE = 120.0  # seconds; a ceiling, not an expectation


@dataclass(frozen=True)
class Drill:
    """A finished drill: its JSON, exit code, output and kept folder."""

    result: dict[str, Any]
    code: int
    output: str
    folder: Path

    @property
    def losses(self) -> dict[int, float]:
        """Loss by step; of a step that was trained twice, the last."""
        lines = (self.folder / self.result["run"] / "losses.jsonl").read_text().splitlines()
        return {entry["step"]: entry["loss"] for entry in map(json.loads, lines)}

    @property
    def steps(self) -> list[int]:
        """Those that the training was to take."""
        return list(range(STEPS.get(self.result["drill"], 110)))

    @property
    def log(self) -> str:
        """What the training said."""
        return (self.folder / self.result["run"] / "train.log").read_text()

    def stored(self, query: str) -> list[list[Any]]:
        """What `query` finds in the kept store."""
        script = (
            "import json,sys; from chdb import dbapi\n"
            "c = dbapi.connect(sys.argv[1]).cursor()\n"
            "c.execute(sys.argv[2])\n"
            "print(json.dumps([list(r) for r in c.fetchall()]))"
        )
        words = [sys.executable, "-c", script, str(self.folder / "state/store"), query]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        return list(json.loads(done.stdout.splitlines()[-1]))

    def assert_nothing_is_left(self) -> None:
        """Of its folder."""
        nothing_is_left(self.folder)


def nothing_is_left(folder: Path) -> None:
    """No process names the drill's folder in its command line or environment, and no mount lies in it."""
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text and int(process.name) != os.getpid():
            left.append((process.name, text[:200]))
    assert left == []


@pytest.fixture
def drill(tmp_path: Path) -> Callable[..., Drill]:
    """Carries out `surefoot drill WORDS`, its folder kept in `tmp_path`/d."""

    def carry_out(*words: str) -> Drill:
        folder = tmp_path / "d"
        env = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}
        argv = [sys.executable, "-P", "-m", "surefoot", "--log-level", "warning", "drill", *words, "--keep", str(folder), "--json"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=240, env=env)
        last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
        assert last.startswith("{"), f"no result: {done.stdout}\n{done.stderr}"
        return Drill(json.loads(last), done.returncode, done.stdout + done.stderr, folder)

    return carry_out


@pytest.fixture
def assert_nothing_is_left() -> Callable[[Path], None]:
    """Looks for processes and mounts of a drill's folder."""
    return nothing_is_left


StartLauncher = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_launcher(tmp_path: Path) -> StartLauncher:
    """Starts `surefoot run` for a stack as on a host of its own: `start_launcher(stack, "who", *words, node="n", KEY="value")`.

    What it prints goes to `who`.log of the test's folder; `within` is what it is run by. Who starts it ends it.
    """

    def start(
        stack: Any, who: str, *words: str, node: str = "", within: tuple[str, ...] = (), **environment: str
    ) -> "subprocess.Popen[bytes]":
        given = {
            "SUREFOOT_NODE": node or who,
            "SUREFOOT_STATE_DIR": str(tmp_path / f"state-{who}"),
            "SUREFOOT_RING_DIR": str(tmp_path / f"rings-{who}"),
            "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
        }
        with (tmp_path / f"{who}.log").open("ab") as log:
            return subprocess.Popen(
                [*within, sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "run", *words],
                env=os.environ | given | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    return start


@pytest.fixture
def pager() -> Iterator[Pager]:
    """A stand-in for PagerDuty."""
    made = Pager()
    yield made
    made.close()


@pytest.fixture
def stack(tmp_path: Path, pager: Pager) -> Iterator[Stack]:
    """A whole Surefoot that tells `pager`."""
    told = [{"kind": "pagerduty", "name": "pager", "key": ROUTING_KEY, "url": pager.url}]
    started = stacks.start(tmp_path / "stack", {"receivers": told})
    yield started
    started.stop()


@dataclass(frozen=True)
class Seen:
    """What the stack has stored and told, read as often as a condition needs."""

    store: Store
    pager: Pager

    def until(self, condition: Callable[[], bool], what: object = "it did not come") -> None:
        """Waits until `condition`; fails with `what` (called, if it can be)."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, what() if callable(what) else what
            time.sleep(0.1)

    def count(self, rows: str) -> int:
        """How many rows there are of what stands after FROM."""
        return int(self.store.query(f"SELECT count() AS n FROM {rows}")[0]["n"])

    def incidents(self, node: str = "") -> list[IncidentTransition]:
        """The last word on each incident (of `node`) that is no part of another."""
        rows = self.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
        return [i for i in {i.incident: i for i in rows}.values() if not i.merged_into and node in ("", i.node)]

    def told(self, incident: IncidentTransition) -> list[Received]:
        """What the pager got of it, in order."""
        return [one for one in self.pager.received if one.dedup_key == incident.incident]

    def paged(self, fault: str, node: str, began: datetime, device: str | None = None) -> IncidentTransition:
        """Waits for the page of the one incident of that fault at `node` (and `device`), and prints how long after `began` it came."""

        def mine() -> list[IncidentTransition]:
            return [i for i in self.incidents(node) if i.fault == fault and device in (None, i.device)]

        self.until(lambda: any(map(self.told, mine())), self.incidents)
        (one,) = mine()
        first, *_ = self.told(one)
        seconds = [(at - began).total_seconds() for at in (one.detected_at or first.at, first.at)]
        sys.stdout.write("{}: found {:.2f} s, paged {:.2f} s after\n".format(fault, *seconds))
        return one

    def over(self, incident: IncidentTransition) -> IncidentTransition:
        """Waits until the incident is resolved and the pager knows; it was told of it once, and of its end once."""
        self.until(lambda: [one.action for one in self.told(incident)][-1:] == ["resolve"], self.incidents)
        assert [one.action for one in self.told(incident)] == ["trigger", "resolve"]
        (last,) = [i for i in self.incidents(incident.node) if i.incident == incident.incident]
        assert last.new_state == "resolved"
        return last


@pytest.fixture
def seen(stack: Stack, pager: Pager) -> Iterator[Seen]:
    """What `stack` has stored and `pager` was told."""
    store = Store.connect(stack.settings)
    yield Seen(store, pager)
    store.close()


StartAgent = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_agent(stack: Stack, tmp_path: Path) -> Iterator[StartAgent]:
    """Starts `surefoot agent` of a further node of `stack`: `start_agent("node-b", *words, within=("unshare", "-m"), KEY="value")`.

    `within` is what it is run by. It is ended with the test.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(node: str, *words: str, within: tuple[str, ...] = (), **environment: str) -> "subprocess.Popen[bytes]":
        given = {
            "SUREFOOT_NODE": node,
            "SUREFOOT_STATE_DIR": str(tmp_path / f"agent-{node}"),
            "SUREFOOT_RING_DIR": str(tmp_path / f"rings-{node}"),
            "SUREFOOT_AGENT__PORT": str(stacks.free_ports(1)[0]),
            "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
        }
        command = [*within, sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "agent", *words]
        with (tmp_path / f"agent-{node}.log").open("ab") as log:
            started.append(subprocess.Popen(command, env=os.environ | given | environment, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
    for process in started:
        process.wait(60)
