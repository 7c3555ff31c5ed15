"""What waits on disk while ingest is away: its bounds, its order, and what a kill or a full disk does to it."""

import gzip
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.sending import buffer as buffer_module
from exporters.sending.buffer import DAMAGED, DiskBuffer
from exporters.sending.outgoing import Signal

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = 86400.0
LARGE = 1 << 30


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)


def opened(folder: Path, limit: int = LARGE, age: float = DAY, clock: Callable[[], datetime] = lambda: T0) -> DiskBuffer:
    made = DiskBuffer(folder, limit, age, spare=0, clock=clock)
    made.open()
    return made


def put(buffer: DiskBuffer, batch: str, body: bytes = b"body", *, lasting: bool = False) -> bool:
    return buffer.put(Signal.LOGS, batch, body, {"surefoot.step": 2}, lasting=lasting)


def drained(buffer: DiskBuffer) -> list[tuple[str, bytes]]:
    found = []
    while (kept := buffer.oldest()) is not None:
        found.append((kept.waiting.batch, gzip.decompress(kept.body)))
        buffer.forget(kept)
    return found


def test_what_was_kept_comes_back_in_its_order_with_its_id_also_in_the_next_process(tmp_path: Path) -> None:
    first = opened(tmp_path / "b")
    for batch in ("z", "a", "m"):
        assert put(first, batch, batch.encode(), lasting=batch == "a")
    assert first.put(Signal.METRICS, "n", b"points", {"metrics": 1}, lasting=False)
    second = opened(tmp_path / "b")
    kept = second.oldest()
    assert kept is not None and (kept.waiting.signal, kept.kinds) == (Signal.LOGS, {"surefoot.step": 2})
    assert (len(second), second.size) == (4, 4 * 4096), "a file takes at least a block"
    assert put(second, "last", b"l")
    assert drained(second) == [("z", b"z"), ("a", b"a"), ("m", b"m"), ("n", b"points"), ("last", b"l")]
    assert (second.size, second.age, list((tmp_path / "b").iterdir())) == (0, None, [])


def test_the_oldest_goes_when_it_is_full_and_is_counted_by_kind(tmp_path: Path) -> None:
    buffer = opened(tmp_path, limit=3 * 4096)
    for n in range(5):
        assert put(buffer, str(n))
    assert (buffer.size, buffer.dropped) == (3 * 4096, {"surefoot.step": 4})
    assert [batch for batch, _ in drained(buffer)] == ["2", "3", "4"]
    assert put(buffer, "large", os.urandom(20_000)), "what can never fit is not tried again"
    assert (len(buffer), buffer.dropped) == (0, {"surefoot.step": 6})


def test_events_outlast_metrics_and_steps_also_in_the_next_process(tmp_path: Path) -> None:
    buffer = opened(tmp_path, limit=3 * 4096)
    for batch, kind, lasting in (("e1", "event", True), ("m1", "metrics", False), ("e2", "event", True), ("m2", "metrics", False)):
        assert buffer.put(Signal.METRICS if kind == "metrics" else Signal.LOGS, batch, b"x", {kind: 1}, lasting=lasting)
    assert buffer.dropped == {"metrics": 1}
    again = opened(tmp_path, limit=3 * 4096)
    assert put(again, "e3", lasting=True)
    assert again.dropped == {"metrics": 1}, "the second, too, before any event"
    assert put(again, "s"), "given up at once: it would take the place of an event"
    assert again.dropped == {"metrics": 1, "surefoot.step": 2}
    assert put(again, "e4", lasting=True)
    assert again.dropped["event"] == 1, "of events alone the oldest goes"
    assert [batch for batch, _ in drained(again)] == ["e2", "e3", "e4"]


def test_files_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "MOST", 2)
    buffer = opened(tmp_path)
    assert all(put(buffer, str(n)) for n in range(5))
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_older_than_the_age_limit_goes_and_a_clock_set_back_removes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    buffer = opened(tmp_path, age=100.0, clock=clock)
    put(buffer, "a")
    clock.seconds = 60.0
    put(buffer, "b")
    assert buffer.age == 60.0
    clock.seconds = 130.0
    assert [batch for batch, _ in drained(opened(tmp_path, age=100.0, clock=clock))] == ["b"]
    put(buffer, "c")
    clock.seconds = -3600.0
    assert buffer.age is not None and drained(opened(tmp_path, age=100.0, clock=clock))[-1][0] == "c"


def test_a_full_disk_takes_nothing_leaves_no_half_file_and_keeps_what_is_there(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    assert put(kept, "a")
    full = DiskBuffer(tmp_path, LARGE, DAY, spare=1 << 60, clock=lambda: T0)
    full.open()
    assert not put(full, "b")
    assert [path.name.split("-")[-1] for path in tmp_path.iterdir()] == ["a.otlp.gz"]


def test_a_folder_that_cannot_be_had_takes_nothing_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    buffer = opened(tmp_path / "file" / "b")
    assert not put(buffer, "a")
    assert buffer.oldest() is None


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\x00" * 60, b"[1]\nxx", b'{"log": 1}\n' + gzip.compress(b"x" * 99)[:-1], b"\xff\n"])
def test_what_a_loss_of_power_left_half_written_is_dropped_and_counted(tmp_path: Path, damage: bytes) -> None:
    buffer = opened(tmp_path)
    put(buffer, "a")
    put(buffer, "b")
    next(tmp_path.glob("*-a.otlp.gz")).write_bytes(damage)
    (tmp_path / ".0000000000000009-1-l-x.otlp.gz").write_bytes(b"unfinished")
    again = opened(tmp_path)
    assert [batch for batch, _ in drained(again)] == ["b"]
    assert again.dropped == {DAMAGED: 1} and list(tmp_path.iterdir()) == []


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    names = (
        "notes.txt",
        "1-2-l-x.txt",
        "x-2-l-b.otlp.gz",
        "1-2-q-b.otlp.gz",
        "1-2-b.otlp.gz",
        "-1-l-a.otlp.gz",
        "1--l-a.otlp.gz",
        "²-1-l-a.otlp.gz",
    )
    for name in names:
        (tmp_path / name).write_text("")
    assert len(opened(tmp_path)) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(names)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sampled_from(["put", "lasting", "send", "kill", "large"]), max_size=30), limit=st.integers(1, 6))
def test_whatever_comes_in_whatever_order_the_newest_within_the_bound_are_there_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], limit: int
) -> None:
    """Against a list: the kept files' sizes are whole blocks, a large one takes two, and what lasts goes last."""
    folder = tmp_path_factory.mktemp("b")
    buffer = opened(folder, limit * 4096)
    model: deque[tuple[str, int, bool]] = deque()
    for n, step in enumerate(steps):
        if step == "send":
            kept = buffer.oldest()
            assert (kept.waiting.batch if kept else None) == (model[0][0] if model else None)
            if kept:
                buffer.forget(kept)
                model.popleft()
        elif step == "kill":
            buffer = opened(folder, limit * 4096)
        else:
            blocks = 2 if step == "large" else 1
            assert put(buffer, str(n), os.urandom(5000) if step == "large" else b"x", lasting=step == "lasting")
            if blocks <= limit:
                model.append((str(n), blocks, step == "lasting"))
            while sum(size for _, size, _ in model) > limit:
                model.remove(next((one for one in model if not one[2]), model[0]))
        assert buffer.size == sum(size for _, size, _ in model) * 4096
    assert [batch for batch, _ in drained(opened(folder, limit * 4096))] == [batch for batch, *_ in model]


def test_the_counts_of_a_file_are_on_its_first_line(tmp_path: Path) -> None:
    put(opened(tmp_path), "a", b"\n\n")
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_bytes().partition(b"\n")[0]) == {"surefoot.step": 2}


FILL = """
import sys
from pathlib import Path
from exporters.sending.buffer import DiskBuffer
from exporters.sending.outgoing import Signal
folder = Path(sys.argv[1])
buffer = DiskBuffer(folder, 1 << 30, 1e6, spare=0)
buffer.open()
import os
import subprocess
import sys
body = os.urandom(20_000)
taken = [buffer.put(Signal.LOGS, str(n), body, {"log": 1}, lasting=n % 2 == 0) for n in range(20)]
kept = buffer.oldest()
buffer.forget(kept)
again = buffer.put(Signal.LOGS, "again", body, {"log": 1}, lasting=True)
print(taken.index(False), sum(taken), again, len(list(folder.iterdir())), len(buffer), buffer.dropped)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_file_system_filled_to_the_last_byte_keeps_what_it_took_and_takes_more_once_there_is_room(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=128k none "$1" && exec "$2" -c "$3" "$1/b"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable, FILL]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=False)
    if "mount" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.split(None, 5) == ["6", "6", "True", "6", "6", "{}\n"], done.stderr
