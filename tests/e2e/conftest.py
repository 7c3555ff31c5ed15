"""Drills as a person calls them, and what they must not leave behind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.secrets import ingest_token

STEPS = {"disk-full": 160, "read-only": 160}  # of the training; else 110


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

    What it prints goes to `who`.log of the test's folder. Who starts it ends it.
    """

    def start(stack: Any, who: str, *words: str, node: str = "", **environment: str) -> "subprocess.Popen[bytes]":
        given = {
            "SUREFOOT_NODE": node or who,
            "SUREFOOT_STATE_DIR": str(tmp_path / f"state-{who}"),
            "SUREFOOT_RING_DIR": str(tmp_path / f"rings-{who}"),
            "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
        }
        with (tmp_path / f"{who}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "run", *words],
                env=os.environ | given | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    return start
