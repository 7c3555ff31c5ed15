"""Whatever happens to the monitor's ring or its reader, a real torchrun training has the losses and the exit code it would have without.

What the monitor costs in time is measured by `make bench NAME=training`; nothing is timed here.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from surefoot.drill import orders
from surefoot.drill.orders import Order
from surefoot.drill.stack import free_ports
from surefoot.hook import layout

RANKS, STEPS = 2, 40
LONG = layout.CAPACITY + 76  # steps: more than a ring holds
TORCHRUN = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
TRAINER = ["-m", "surefoot.drill.trainer", "--checkpoint-every", "20"]
PATIENCE = 120.0  # seconds; a ceiling, not an expectation

MOUNTED = 'mount -t tmpfs -o size="$1" none "$2" || { echo "no mounts here" >&2; exit 77; }; shift; '
FULL_FROM_THE_START = MOUNTED + 'shift; exec "$@"'
FILLED_UP_LATER = (
    MOUNTED
    + """
rings=$1; losses=$2; shift 2
"$@" & training=$!
while kill -0 $training && ! [ -s "$losses" ]; do sleep 0.05; done
dd if=/dev/zero of="$rings/fill" bs=4k 2>/dev/null
wait $training; code=$?
dd if=/dev/zero of="$rings/more" bs=4k count=1 2>/dev/null && { echo "it was not full" >&2; exit 78; }
cp "$rings"/*.ring "$(dirname "$losses")"
exit $code
"""
)


@dataclass(frozen=True)
class Trained:
    """A training that has ended."""

    code: int
    errors: str
    losses: dict[int, float]

    def is_as(self, undisturbed: "Trained", steps: int) -> None:
        """It ended like `undisturbed`, with equal losses, and nothing in it raised."""
        assert self.code == 0, self.errors
        assert "Traceback" not in self.errors
        assert self.losses == {step: undisturbed.losses[step] for step in range(steps)}


def environment(**ours: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("SUREFOOT_")}
    return bare | {"OMP_NUM_THREADS": "1", layout.ENV_RUN: "calm", layout.ENV_ATTEMPT: "calm-1"} | ours


def train(
    out: Path,
    environ: Mapping[str, str],
    *,
    steps: int = STEPS,
    step_time: float = 0.0,
    around: tuple[str, ...] = (),
    meanwhile: Callable[[], None] = lambda: None,
) -> Trained:
    """Train for `steps` in a process that `around` wraps; `meanwhile` is called once the first step is done."""
    options = ["--out", str(out), "--steps", str(steps), "--step-time", str(step_time)]
    process = subprocess.Popen([*around, *TORCHRUN, *TRAINER, *options], env=dict(environ), stderr=subprocess.PIPE, text=True)
    losses = out / "losses.jsonl"
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and not losses.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        meanwhile()
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.terminate()  # torchrun ends its ranks; nothing where it has ended
        process.wait(PATIENCE)
    entries = [json.loads(line) for line in losses.read_text().splitlines()] if losses.exists() else []
    return Trained(process.returncode, errors, {entry["step"]: entry["loss"] for entry in entries})


def steps_in(ring: Path) -> list[int]:
    """The numbers of the steps that are in a ring, in order."""
    data = ring.read_bytes()
    found = []
    for at in range(layout.HEADER_SIZE, len(data), layout.SLOT_SIZE):
        sequence, kind, _ = layout.SLOT_HEAD.unpack_from(data, at)
        if sequence and kind == layout.KIND_STEP:
            found.append(layout.STEP.unpack_from(data, at)[3])
    return sorted(found)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The training with the monitor off."""
    out = tmp_path_factory.mktemp("off")
    trained = train(out, environment(SUREFOOT_MONITOR_OFF="1", SUREFOOT_RING_DIR=str(out / "rings")), steps=LONG)
    assert trained.code == 0, trained.errors
    assert len(trained.losses) == LONG and not (out / "rings").exists()
    return trained


def test_without_an_agent_and_with_its_ring_overrun_the_training_is_the_same(tmp_path: Path, undisturbed: Trained) -> None:
    trained = train(tmp_path, environment(SUREFOOT_RING_DIR=str(tmp_path / "rings")), steps=LONG)
    trained.is_as(undisturbed, LONG)
    for rank in range(RANKS):
        ring = tmp_path / "rings" / f"calm-1.{rank}.ring"
        assert int.from_bytes(ring.read_bytes()[layout.WRITTEN_OFFSET :][:8], "little") > layout.CAPACITY
        kept = steps_in(ring)
        assert kept == list(range(kept[0], LONG)) and kept[0] > 0, "the newest are there, the oldest are not"


def test_an_agent_killed_while_it_reads_changes_nothing_for_the_training(tmp_path: Path, undisturbed: Trained) -> None:
    environ = environment(SUREFOOT_RING_DIR=str(tmp_path / "rings"), SUREFOOT_STATE_DIR=str(tmp_path / "state"))
    agent_port, nobody = free_ports(2)
    ports = {"SUREFOOT_AGENT__PORT": str(agent_port), "SUREFOOT_INGEST__PORT": str(nobody), "SUREFOOT_INGEST__TOKEN": "t" * 32}
    log = (tmp_path / "agent.log").open("wb")
    agent = subprocess.Popen([sys.executable, "-P", "-m", "surefoot", "agent"], env={**environ, **ports}, stdout=log, stderr=log)
    orders.give(tmp_path, Order(orders.SLOW, 1, 0.5))  # so that it is not over before the agent is there

    def kill_the_agent() -> None:
        _kill_once_it_reads(agent, tmp_path / "rings")
        orders.withdraw(tmp_path)

    try:
        trained = train(tmp_path, environ, step_time=0.05, meanwhile=kill_the_agent)
    finally:
        agent.kill()
        agent.wait()
        log.close()
    assert agent.returncode == -signal.SIGKILL
    trained.is_as(undisturbed, STEPS)
    assert steps_in(tmp_path / "rings" / "calm-1.0.ring") == list(range(STEPS))


def _kill_once_it_reads(agent: subprocess.Popen[bytes], rings: Path) -> None:
    """Kill the agent when it has a ring open."""
    deadline = time.monotonic() + PATIENCE
    while not any(rings in path.parents for path in _open_files(agent.pid)):
        assert agent.poll() is None and time.monotonic() < deadline, (rings.parent / "agent.log").read_text()
        time.sleep(0.005)
    agent.kill()


def _open_files(pid: int) -> list[Path]:
    found = []
    for number in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found.append(number.readlink())
    return found


def test_a_ring_folder_that_cannot_be_written_changes_nothing_for_the_training(tmp_path: Path, undisturbed: Trained) -> None:
    (tmp_path / "file").touch()
    trained = train(tmp_path, environment(SUREFOOT_RING_DIR=str(tmp_path / "file" / "rings")))
    trained.is_as(undisturbed, STEPS)
    assert trained.errors.count("no ring:") == RANKS, "a line of each rank says so"


@pytest.mark.parametrize(
    ("script", "size", "kept"),
    [(FULL_FROM_THE_START, "64k", False), (FILLED_UP_LATER, "640k", True)],
    ids=["full from the start", "filled up later"],
)
def test_a_full_disk_under_the_rings_changes_nothing_for_the_training(
    tmp_path: Path, undisturbed: Trained, script: str, size: str, kept: bool
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounts a small file system: needs root")
    rings = tmp_path / "rings"
    rings.mkdir(mode=0o777)
    around = ("unshare", "-m", "sh", "-c", script, "sh", size, str(rings), *((str(tmp_path / "losses.jsonl"),) if kept else ()))
    trained = train(tmp_path, environment(SUREFOOT_RING_DIR=str(rings)), step_time=0.02, around=around)
    if trained.code == 77 or "unshare failed" in trained.errors:
        pytest.skip(f"no mounts here: {trained.errors.strip()}")
    trained.is_as(undisturbed, STEPS)
    assert trained.errors.count("no ring:") == (0 if kept else RANKS)
    if kept:
        assert steps_in(tmp_path / "calm-1.1.ring") == list(range(STEPS)), "what was allocated at the start can be written"
