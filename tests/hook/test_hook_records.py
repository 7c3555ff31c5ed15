"""What a monitor is told comes out of its ring."""

import math
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.layers import Phase
from surefoot import StepMonitor
from surefoot.hook import layout


def test_the_phases_are_those_of_the_catalogue() -> None:
    assert layout.PHASES == tuple(phase.value for phase in Phase)


def test_a_step_is_recorded_with_its_figures_and_phases(rings: Any) -> None:
    monitor = StepMonitor()
    before = time.time_ns()
    with monitor.step(7) as step:
        with monitor.phase("data"):
            time.sleep(0.01)
        with monitor.phase("forward"):
            time.sleep(0.02)
        step.loss, step.grad_norm, step.flops, step.tokens, step.samples = 2.5, 0.25, 1e12, 4096, 32
    after = time.time_ns()
    (record,) = rings.records()
    assert (record["step"], record["loss"], record["grad_norm"]) == (7, 2.5, 0.25)
    assert (record["flops"], record["tokens"], record["samples"]) == (1e12, 4096, 32)
    assert set(record["phases"]) == {"data", "forward"}
    assert record["phases"]["data"] >= 10_000_000 and record["phases"]["forward"] >= 20_000_000
    assert sum(record["phases"].values()) <= record["ended"] - record["started"]
    assert before - 1_000_000 <= record["started"] < record["ended"] <= after + 1_000_000


def test_the_header_says_who_writes(rings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "9", "LOCAL_RANK": "1", "WORLD_SIZE": "16"}.items():
        monkeypatch.setenv(name, value)
    StepMonitor()
    header = layout.HEADER.unpack_from(rings.path("run-1.9").read_bytes())
    assert header[:5] == (layout.MAGIC, layout.VERSION, layout.HEADER_SIZE, layout.SLOT_SIZE, layout.CAPACITY)
    assert header[5:9] == (os.getpid(), 9, 1, 16)
    assert [text.rstrip(b"\0") for text in header[10:]] == [b"run", b"run-1", b"n1"]


def test_figures_and_phases_of_one_step_do_not_reach_the_next(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1) as step, monitor.phase("forward"):
        step.loss = 1.0
    with monitor.step(2):
        pass
    with monitor.step(3) as step, monitor.phase("data"):
        step.tokens = 5
    assert [sorted(r.keys() & set(layout.FIGURES)) for r in rings.records()] == [["loss"], [], ["tokens"]]
    assert [list(r["phases"]) for r in rings.records()] == [["forward"], [], ["data"]]


def test_a_loss_that_is_not_a_number_is_kept_as_such(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1) as step:
        step.loss, step.grad_norm = math.nan, math.inf
    (record,) = rings.records()
    assert math.isnan(record["loss"]) and record["grad_norm"] == math.inf


def test_whole_numbers_and_whole_floats_count_anything_else_is_absent(rings: Any) -> None:
    monitor = StepMonitor()
    for tokens in (4096.0, 4096.5, -1, 2**64, "many", None):
        with monitor.step(1) as step:
            step.tokens = tokens  # type: ignore[assignment]
            step.loss = 3
    assert [r.get("tokens") for r in rings.records()] == [4096, None, None, None, None, None]
    assert [r["loss"] for r in rings.records()] == [3.0] * 6


def test_times_never_go_back_and_steps_do_not_overlap(rings: Any) -> None:
    monitor = StepMonitor()
    for number in range(200):
        with monitor.step(number), monitor.phase("forward"):
            pass
    times = [t for r in rings.records() for t in (r["started"], r["ended"])]
    assert len(times) == 400 and times == sorted(times)


def test_a_full_ring_keeps_the_newest_records_and_counts_all(rings: Any) -> None:
    monitor = StepMonitor()
    for number in range(layout.CAPACITY + 10):
        with monitor.step(number):
            pass
    data = rings.path().read_bytes()
    assert int.from_bytes(data[layout.WRITTEN_OFFSET :][:8], "little") == layout.CAPACITY + 10
    assert [r["step"] for r in rings.records()] == list(range(10, layout.CAPACITY + 10))


def test_a_phase_outside_any_step_is_a_record_of_its_own(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.phase("load_checkpoint"), monitor.collective("barrier"):
        pass
    with monitor.step(4):
        pass
    with monitor.phase("checkpoint"):
        pass
    load, step, checkpoint = rings.records()
    assert (load["phase"], load["after"]) == ("load_checkpoint", 0)
    assert (checkpoint["phase"], checkpoint["after"]) == ("checkpoint", 5)
    assert load["started"] <= load["ended"] <= step["started"] and step["ended"] <= checkpoint["started"] <= checkpoint["ended"]


def test_a_step_that_ends_by_an_exception_is_not_completed_and_the_exception_goes_on(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1):
        pass
    with pytest.raises(ZeroDivisionError), monitor.step(2) as step, monitor.phase("forward"):
        step.loss = 9.0
        _ = 1 / 0
    live = rings.live()
    assert (live.step, live.completed, live.phase) == (2, 1, "")
    with monitor.step(2):
        pass
    assert [(r["step"], r.get("loss"), r["phases"]) for r in rings.records()] == [(1, None, {}), (2, None, {})]


def test_the_live_state_follows_every_step_phase_and_collective(rings: Any) -> None:
    monitor = StepMonitor()
    seen = [rings.live()]
    with monitor.phase("init"):
        seen.append(rings.live())
    with monitor.step(5):
        seen.append(rings.live())
        with monitor.phase("backward"):
            seen.append(rings.live())
            with monitor.collective("all_reduce"):
                seen.append(rings.live())
            seen.append(rings.live())
        seen.append(rings.live())
    seen.append(rings.live())
    assert [(s.step, s.completed, s.phase, s.collective) for s in seen] == [
        (None, None, "", ""),
        (None, None, "init", ""),
        (5, None, "", ""),
        (5, None, "backward", ""),
        (5, None, "comm_wait", "all_reduce"),
        (5, None, "backward", ""),
        (5, None, "", ""),
        (5, 5, "", ""),
    ]
    since = [s.since for s in seen]
    assert since == sorted(set(since)), "each one began later than the one before"
    assert abs(since[-1] - time.time_ns()) < 5 * 10**9


def test_a_collective_inside_an_eval_keeps_the_phase_and_names_the_collective(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1), monitor.phase("eval"), monitor.collective("broadcast"):
        live = rings.live()
    assert (live.phase, live.collective) == ("eval", "broadcast")


def test_closing_says_when_and_ends_the_recording(rings: Any) -> None:
    monitor = StepMonitor()
    with monitor.step(1):
        pass
    monitor.close()
    with monitor.step(2):
        pass
    data = rings.path().read_bytes()
    closed = int.from_bytes(data[layout.CLOSED_OFFSET :][:8], "little")
    assert abs(closed - time.time_ns()) < 5 * 10**9
    assert [r["step"] for r in rings.records()] == [1] and monitor.reason == "closed"


def test_the_ring_folder_is_made_for_every_user_and_the_file_is_readable(rings: Any) -> None:
    StepMonitor()
    assert rings.folder.stat().st_mode & 0o7777 == 0o1777
    assert rings.path().stat().st_mode & 0o777 == 0o644
    assert rings.path().stat().st_blocks * 512 >= layout.HEADER_SIZE + layout.CAPACITY * layout.SLOT_SIZE


def test_resuming_is_told_by_the_launcher(rings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert StepMonitor().resume_from is None
    monkeypatch.setenv(layout.ENV_RESUME_FROM, str(tmp_path))
    assert StepMonitor().resume_from == str(tmp_path)


def test_a_step_without_phases_has_none_in_a_slot_that_held_other_records(rings: Any, tmp_path: Path) -> None:
    monitor = StepMonitor()
    (tmp_path / "saved").mkdir()
    monitor.checkpoint_complete(tmp_path / "saved", 1)
    for number in range(layout.CAPACITY - 1):
        with monitor.step(number), monitor.phase("data"):
            pass
    for number in range(layout.CAPACITY):
        with monitor.step(number):
            pass
    assert [r["phases"] for r in rings.records()] == [{}] * layout.CAPACITY
