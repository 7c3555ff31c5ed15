"""The main job, end to end: a real stack, a real torchrun training, a real signal, and nobody who helps."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ARGS = [sys.executable, "-P", "-m", "surefoot", "--log-level", "warning"]
LOSS_TOLERANCE = 1e-6
STEPS = 110


@dataclass(frozen=True)
class Drill:
    """A finished drill: its JSON, exit code and kept folder."""

    result: dict[str, Any]
    code: int
    output: str
    folder: Path

    @property
    def losses(self) -> dict[int, float]:
        """Loss by step; of a step that was trained twice, the last."""
        lines = (self.folder / self.result["run"] / "losses.jsonl").read_text().splitlines()
        return {entry["step"]: entry["loss"] for entry in map(json.loads, lines)}

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


def drill(folder: Path, *words: str) -> Drill:
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}
    done = subprocess.run(
        [*ARGS, "drill", *words, "--keep", str(folder), "--json"], capture_output=True, text=True, check=False, timeout=240, env=env
    )
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    assert last.startswith("{"), f"no result: {done.stdout}\n{done.stderr}"
    return Drill(json.loads(last), done.returncode, done.stdout + done.stderr, folder)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """Losses of the same training that nobody watches and nobody hurts."""
    out = tmp_path_factory.mktemp("undisturbed")
    torchrun = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    trainer = ["-m", "surefoot.drill.trainer", "--steps", str(STEPS), "--step-time", "0", "--checkpoint-every", "1000", "--out", str(out)]
    subprocess.run([*torchrun, *trainer], check=True, capture_output=True, timeout=120)
    entries = map(json.loads, (out / "losses.jsonl").read_text().splitlines())
    return {entry["step"]: entry["loss"] for entry in entries}


def assert_right(done: Drill, undisturbed: dict[int, float], layer: str, rank: int | None = 1) -> None:
    result = done.result
    assert result["wrong"] == [], done.output
    assert done.code == 0
    assert result["correct"] == {"detected": True, "located": True, "recovered": True}
    assert (result["located"]["layer"], result["located"]["rank"]) == (layer, rank)
    assert result["action"] == "restart_run"
    assert [p.split()[0] for p in result["pages"]] == ["trigger", "resolve"]
    assert len({p.split()[1] for p in result["pages"]}) == 1
    assert done.losses.keys() == undisturbed.keys()
    assert max(abs(done.losses[s] - undisturbed[s]) for s in undisturbed) <= LOSS_TOLERANCE
    assert_each_step_is_stored_once(done)
    assert_the_ledger_sums_to_wall_time_times_ranks(done)


def assert_each_step_is_stored_once(done: Drill) -> None:
    rows = Counter((attempt, rank, step) for attempt, rank, step in done.stored("SELECT attempt, rank, step FROM surefoot.steps"))
    assert {k: n for k, n in rows.items() if n > 1} == {}
    last = max(attempt for attempt, _, _ in rows)
    for rank in (0, 1):
        steps = sorted(step for attempt, r, step in rows if (attempt, r) == (last, rank))
        assert steps == list(range(steps[0], STEPS)), f"rank {rank} of {last} lost steps"


def assert_the_ledger_sums_to_wall_time_times_ranks(done: Drill) -> None:
    started, finished = (at for (at,) in done.stored("SELECT toUnixTimestamp64Micro(at) FROM surefoot.runs ORDER BY at"))
    assert sum(round(seconds * 1e6) for seconds in done.result["ledger"].values()) == 2 * (finished - started)


def assert_nothing_is_left(folder: Path) -> None:
    """No process names the drill's folder in its command line or environment."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text and int(process.name) != os.getpid():
            left.append((process.name, text[:200]))
    assert left == []


def test_a_killed_rank_is_seen_located_restarted_and_paid_for(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    done = drill(tmp_path / "d", "kill")
    assert_right(done, undisturbed, "framework")
    assert_nothing_is_left(tmp_path / "d")


def test_a_rank_stopped_inside_a_collective_is_told_from_the_one_that_waits_for_it(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    done = drill(tmp_path / "d", "hang", "--where", "inside")
    assert_right(done, undisturbed, "framework")
    assert_nothing_is_left(tmp_path / "d")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("words", [("kill",), ("hang", "--where", "outside"), ("hang", "--where", "inside")], ids=" ".join)
def test_five_of_five_drills_are_right(tmp_path: Path, undisturbed: dict[int, float], words: tuple[str, ...], turn: int) -> None:
    assert_right(drill(tmp_path / "d", *words), undisturbed, "framework")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize(
    ("words", "layer", "rank"),
    [
        (("kill", "--nodes", "2"), "framework", 1),
        (("hang", "--nodes", "2"), "framework", 1),
        (("node-loss",), "kernel", None),
    ],
    ids=["kill", "hang", "node-loss"],
)
def test_five_of_five_drills_over_two_nodes_are_right(
    tmp_path: Path, undisturbed: dict[int, float], words: tuple[str, ...], layer: str, rank: int | None, turn: int
) -> None:
    done = drill(tmp_path / "d", *words)
    assert_right(done, undisturbed, layer, rank)
    assert done.result["located"]["node"] == "node-b"
    assert [n for (n,) in done.stored("SELECT uniqExact(incident) FROM surefoot.incidents")] == [1]
    assert_nothing_is_left(tmp_path / "d")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["ingest", "store", "jobs"])
@pytest.mark.parametrize("kind", ["kill", "hang"])
def test_a_part_of_surefoot_killed_in_the_middle_of_a_drill_loses_no_row_and_the_incident_still_ends(
    tmp_path: Path, undisturbed: dict[int, float], kind: str, part: str
) -> None:
    assert_right(drill(tmp_path / "d", kind, "--also-kill", part), undisturbed, "framework")
