"""The main job, end to end: a real stack, a real torchrun training, a real signal, and nobody who helps."""

import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

LOSS_TOLERANCE = 1e-6
STEPS = 110


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """Losses of the same training that nobody watches and nobody hurts."""
    out = tmp_path_factory.mktemp("undisturbed")
    torchrun = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    trainer = ["-m", "surefoot.drill.trainer", "--steps", str(STEPS), "--step-time", "0", "--checkpoint-every", "1000", "--out", str(out)]
    subprocess.run([*torchrun, *trainer], check=True, capture_output=True, timeout=120)
    entries = map(json.loads, (out / "losses.jsonl").read_text().splitlines())
    return {entry["step"]: entry["loss"] for entry in entries}


def assert_right(done: Any, undisturbed: dict[int, float], layer: str, rank: int | None = 1) -> None:
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


def assert_each_step_is_stored_once(done: Any) -> None:
    rows = Counter((attempt, rank, step) for attempt, rank, step in done.stored("SELECT attempt, rank, step FROM surefoot.steps"))
    assert {k: n for k, n in rows.items() if n > 1} == {}
    last = max(attempt for attempt, _, _ in rows)
    for rank in (0, 1):
        steps = sorted(step for attempt, r, step in rows if (attempt, r) == (last, rank))
        assert steps == list(range(steps[0], STEPS)), f"rank {rank} of {last} lost steps"


def assert_the_ledger_sums_to_wall_time_times_ranks(done: Any) -> None:
    started, finished = (at for (at,) in done.stored("SELECT toUnixTimestamp64Micro(at) FROM surefoot.runs ORDER BY at"))
    assert sum(round(seconds * 1e6) for seconds in done.result["ledger"].values()) == 2 * (finished - started)


def test_a_killed_rank_is_seen_located_restarted_and_paid_for(drill: Any, undisturbed: dict[int, float]) -> None:
    done = drill("kill")
    assert_right(done, undisturbed, "framework")
    done.assert_nothing_is_left()


def test_a_rank_stopped_inside_a_collective_is_told_from_the_one_that_waits_for_it(drill: Any, undisturbed: dict[int, float]) -> None:
    done = drill("hang", "--where", "inside")
    assert_right(done, undisturbed, "framework")
    done.assert_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("words", [("kill",), ("hang", "--where", "outside"), ("hang", "--where", "inside")], ids=" ".join)
def test_five_of_five_drills_are_right(drill: Any, undisturbed: dict[int, float], words: tuple[str, ...], turn: int) -> None:
    assert_right(drill(*words), undisturbed, "framework")


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
    drill: Any, undisturbed: dict[int, float], words: tuple[str, ...], layer: str, rank: int | None, turn: int
) -> None:
    done = drill(*words)
    assert_right(done, undisturbed, layer, rank)
    assert done.result["located"]["node"] == "node-b"
    assert [n for (n,) in done.stored("SELECT uniqExact(incident) FROM surefoot.incidents")] == [1]
    done.assert_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("part", ["ingest", "store", "jobs"])
@pytest.mark.parametrize("kind", ["kill", "hang"])
def test_a_part_of_surefoot_killed_in_the_middle_of_a_drill_loses_no_row_and_the_incident_still_ends(
    drill: Any, undisturbed: dict[int, float], kind: str, part: str
) -> None:
    assert_right(drill(kind, "--also-kill", part), undisturbed, "framework")
