"""The launcher's small parts: exit statuses, output, answers of the control plane, names."""

import os
import selectors
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from exporters.job.control import Answer, Issued, Request, parse_answer, refusal
from exporters.job.exits import describe, exit_code, read_error_file, signal_name
from exporters.job.identify import Place
from exporters.job.journal import Journal
from exporters.job.launches import attempt_id, check_run, default_run, last_launch, note_launch
from exporters.job.procfs import read_stat
from exporters.job.ranks import Ranks
from exporters.job.tee import Printed, Shipper
from pipeline.errors import InputError

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("exit 0", 0)])
def test_the_status_of_a_zombie_is_read_without_waiting_for_it(command: str, code: int) -> None:
    process = subprocess.Popen(["sh", "-c", command])
    fd = os.pidfd_open(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    stat = read_stat(process.pid)
    assert stat
    try:
        assert stat.state == "Z"
        assert exit_code(process.pid, stat.start, fd) == code == process.wait()
        after = exit_code(process.pid, stat.start, fd)  # waited for by now: only newer kernels still tell
        assert after in (code, None)
    finally:
        os.close(fd)


def test_ends_are_described_for_people() -> None:
    assert [describe(c) for c in (-9, 3, 0, None)] == [
        "killed by SIGKILL",
        "exited with 3",
        "exited with 0",
        "ended, its exit status is not known",
    ]
    assert [signal_name(c) for c in (-15, 1, None, -63)] == ["SIGTERM", "", "", "SIG63"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"message": {"message": "ValueError: x", "extraInfo": {"timestamp": "1"}}}', "ValueError: x"),
        ('{"message": "plain"}', "plain"),
        ('{"message": 5}', ""),
        ("[]", ""),
        ("{", ""),
    ],
)
def test_torchruns_error_file_is_read_in_both_its_forms_and_nonsense_is_nothing(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "error.json").write_text(content)
    assert read_error_file(str(tmp_path / "error.json")) == message
    assert read_error_file(str(tmp_path / "none.json")) == ""


def test_slow_shipping_drops_and_counts_and_never_keeps_the_output_waiting() -> None:
    gate = threading.Event()
    shipped: list[Printed] = []

    def ship(printed: list[Printed]) -> None:
        gate.wait(60)
        shipped.extend(printed)

    shipper = Shipper(ship, lambda word: None, limit=10_000)
    began = time.monotonic()
    for i in range(1000):
        shipper.put("stdout", b"%0999d\n" % i)
    assert time.monotonic() - began < 5.0
    gate.set()
    shipper.drain(60)
    assert shipper.dropped > 900_000
    assert len(shipped) * 1000 + shipper.dropped == 1_000_000


def test_an_answer_of_the_control_plane_is_read() -> None:
    body = (
        b'{"term": 7, "attempt": {"id": "r-2", "launch": 2}, "requests": [{"id": "a", "kind": "restart_run", "attempt": "r-1",'
        b' "new_attempt": "r-2", "launch": 2, "grace": 0, "deadline_us": 1790000000000000, "term": 7, "reason": "hang"}]}'
    )
    deadline = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
    assert parse_answer(body) == Answer(7, Issued("r-2", 2), (Request("a", "restart_run", "r-1", 7, deadline, "r-2", 2, 0.0, "hang"),))
    assert parse_answer(b'{"term": 1, "attempt": null, "requests": []}') == Answer(1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"term": "x"}',
        b'{"term": 1, "requests": [{"id": 5, "kind": "capture", "term": 1}]}',
        b'{"term": 1, "attempt": "r-1"}',
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(body: bytes) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        parse_answer(body)


def test_a_request_is_refused_for_its_term_deadline_kind_or_missing_attempt() -> None:
    good = Request("a", "restart_run", "r-1", 7, NOW + timedelta(seconds=1), "r-2", 2)
    assert refusal(good, NOW, 7) == ""
    assert refusal(good, NOW, 6) == ""
    assert refusal(good, NOW, 8) == "term 7 is over, 8 was seen"
    assert refusal(good, NOW + timedelta(seconds=3), 7) == "its deadline passed 2.0 s ago"
    assert refusal(Request("a", "reboot", "r-1", 7), NOW, 7) == "unknown kind of request 'reboot'"
    assert refusal(Request("a", "restart_run", "r-1", 7), NOW, 7) == "it names no new attempt"


def test_a_run_is_named_after_its_command_and_launches_are_counted(tmp_path: Path) -> None:
    name = default_run("/opt/my tools/torchrun", NOW)
    assert name.startswith("torchrun-20261130-090000-")
    check_run(name)
    check_run(default_run("/bin/[", NOW))
    for bad in ("", "a/b", "..", "a b", "x" * 61):
        with pytest.raises(InputError):
            check_run(bad)
    assert attempt_id("r", 3) == "r-3"
    assert last_launch(tmp_path, "r") == 0
    note_launch(tmp_path, "r", 3)
    assert (last_launch(tmp_path, "r"), last_launch(tmp_path, "other")) == (3, 0)
    (tmp_path / "r.launch").write_text("nonsense")
    assert last_launch(tmp_path, "r") == 0
    note_launch(tmp_path / "new" / "folder", "r", 3)
    assert last_launch(tmp_path / "new" / "folder", "r") == 3
    note_launch(tmp_path / "r.launch", "r", 3)  # a folder that cannot be made costs only the count


class Kept:
    """A sender that only keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def send_records(self, records: list[tuple[str, Any]]) -> None:
        self.records += [record for _, record in records]


@pytest.mark.parametrize(("back", "pinned"), [(30.0, True), (3600.0, False)])
def test_transitions_stay_in_order_when_the_clock_is_set_back_but_not_in_a_future_that_ingest_refuses(back: float, pinned: bool) -> None:
    kept, times = Kept(), iter([NOW, NOW - timedelta(seconds=back), NOW - timedelta(seconds=back - 1)])
    journal = Journal(kept, "r", "n", ["true"], clock=lambda: next(times))  # type: ignore[arg-type]
    for state in ("starting", "running", "ended"):
        journal.attempt_is("r-1", 1, state, "")
    first, second, third = (r.at for r in kept.records)
    assert (first < second < third) is pinned
    assert second < third
    if not pinned:
        assert second == NOW - timedelta(seconds=back)


def test_a_rank_that_died_before_the_launcher_stopped_the_others_was_not_stopped_by_it() -> None:
    """Its status is not known: torchrun waited for it first, and its word has not come yet."""
    process = subprocess.Popen(["sleep", "60"])
    stat = read_stat(process.pid)
    assert stat is not None
    with selectors.DefaultSelector() as selector:
        ranks = Ranks(selector)
        dead = ranks.add(Place(process.pid, stat.start - 1, 0))  # another process has its pid by now
        alive = ranks.add(Place(process.pid, stat.start, 1))
        ranks.are_stopped()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 30
        while not (dead.exit and alive.exit) and time.monotonic() < deadline:
            ranks.ended([alive], {})
            time.sleep(0.02)
        ranks.close()
    assert dead.exit and dead.exit.stopped_by == "" and dead.exit.failed
    assert alive.exit and alive.exit.stopped_by == "launcher"
