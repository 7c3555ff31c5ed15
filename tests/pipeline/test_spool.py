"""What the spool acknowledged it gives back, whatever happened to its files and its process."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import SpoolFull, SurefootError
from pipeline.ingest import spool as spool_module
from pipeline.ingest.frames import ENTRY, MARK, frame_of, frames
from pipeline.ingest.spool import Spool

CAP = 1 << 20
ROOT = Path(__file__).resolve().parents[2]


def contents(folder: Path) -> list[bytes]:
    """All payloads, as the next process finds them."""
    spool: Spool[None] = Spool(folder, CAP)
    try:
        return [payload for segment in spool.closed for chunk in spool.read(segment) for payload in chunk]
    finally:
        spool.close()


def append(spool: Spool[Any], payload: bytes, item: Any) -> None:
    """Add an entry and wait until it is on disk."""
    spool.sync(spool.put(payload, item))


def test_entries_come_back_in_order_after_a_restart(tmp_path: Path) -> None:
    spool: Spool[int] = Spool(tmp_path, CAP)
    for i in range(5):
        append(spool, b"%d" % i, i)
        if i == 2:
            spool.roll()
    spool.close()
    assert contents(tmp_path) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_chunk_holds_what_came_since_the_last_mark_in_memory_and_on_disk_alike(tmp_path: Path) -> None:
    spool: Spool[str] = Spool(tmp_path, CAP)
    assert spool.mark() is None
    append(spool, b"a", "A")
    append(spool, b"b", "B")
    first = spool.mark()
    assert spool.mark() is None  # nothing since
    append(spool, b"c", "C")
    segment = spool.roll()
    assert first is not None
    assert segment is first.segment
    assert (first.index, first.name) == (0, f"{segment.name}.0")
    assert segment.chunks == [["A", "B"], ["C"]]
    assert spool.read(segment) == [[b"a", b"b"], [b"c"]]
    spool.close()


def test_a_removed_segment_is_gone_and_its_name_never_comes_back(tmp_path: Path) -> None:
    names = set()
    for _ in range(20):
        spool: Spool[None] = Spool(tmp_path, CAP)
        append(spool, b"x", None)
        segment = spool.roll()
        assert segment is not None
        names.add(segment.name)
        spool.remove(segment)
        assert spool.size == 0
        spool.close()
    assert len(names) == 20
    assert contents(tmp_path) == []


def test_a_full_spool_refuses_and_takes_again_once_there_is_room(tmp_path: Path) -> None:
    spool: Spool[None] = Spool(tmp_path, 1000)
    append(spool, b"x" * 900, None)
    with pytest.raises(SpoolFull, match="909 B of at most 1000 bytes"):
        append(spool, b"y" * 100, None)
    segment = spool.roll()
    assert segment is not None
    spool.remove(segment)
    append(spool, b"z" * 100, None)
    spool.close()
    assert contents(tmp_path) == [b"z" * 100]


def test_a_second_owner_is_refused_with_what_to_do(tmp_path: Path) -> None:
    spool: Spool[None] = Spool(tmp_path, CAP)
    with pytest.raises(SurefootError, match="another process uses the spool"):
        Spool(tmp_path, CAP)
    spool.close()
    Spool(tmp_path, CAP).close()


def test_many_that_append_together_share_the_disks_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = os.fdatasync

    def slow(fd: int) -> None:  # a disk that takes 5 ms, so that the others arrive meanwhile
        calls.append(fd)
        threading.Event().wait(0.005)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", slow)
    spool: Spool[int] = Spool(tmp_path, CAP)
    threads = [threading.Thread(target=lambda i=i: [append(spool, b"%d.%d" % (i, n), i) for n in range(10)]) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    spool.close()
    assert len(calls) < 80  # 160 appends
    assert sorted(contents(tmp_path)) == sorted(b"%d.%d" % (i, n) for i in range(16) for n in range(10))


def test_marks_and_rolls_among_concurrent_appends_lose_and_repeat_nothing(tmp_path: Path) -> None:
    spool: Spool[bytes] = Spool(tmp_path, CAP)
    taken: list[bytes] = []
    done = threading.Event()

    def fill(i: int) -> None:
        for n in range(100):
            payload = b"%d.%d" % (i, n)
            append(spool, payload, payload)

    def take() -> None:
        rng = random.Random(1)
        while not done.is_set() or spool.size:
            spool.mark()
            if rng.random() < 0.5 and (segment := spool.roll()):
                assert segment.chunks is not None
                assert segment.chunks == spool.read(segment)
                taken.extend(x for chunk in segment.chunks for x in chunk)
                spool.remove(segment)

    taker = threading.Thread(target=take)
    threads = [threading.Thread(target=fill, args=(i,)) for i in range(4)]
    for t in (taker, *threads):
        t.start()
    for t in threads:
        t.join()
    done.set()
    taker.join()
    spool.close()
    assert sorted(taken) == sorted(b"%d.%d" % (i, n) for i in range(4) for n in range(100))


class Disk:
    """A disk that refuses some calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = self.broken = False
        write, fdatasync = os.write, os.fdatasync

        def half(fd: int, data: bytes) -> int:
            if self.full:
                write(fd, bytes(data[: len(data) // 2]))  # what a full disk does: some of it
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(fd, data)

        def sync(fd: int) -> None:
            if self.broken:
                raise OSError(errno.EIO, "Input/output error")
            fdatasync(fd)

        monkeypatch.setattr(os, "write", half)
        monkeypatch.setattr(os, "fdatasync", sync)


def test_a_full_disk_refuses_the_entry_and_leaves_no_torn_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    spool: Spool[None] = Spool(tmp_path, CAP)
    append(spool, b"first", None)
    disk.full = True
    with pytest.raises(SpoolFull, match="No space left"):
        append(spool, b"second", None)
    disk.full = False
    append(spool, b"third", None)
    spool.close()
    assert contents(tmp_path) == [b"first", b"third"]


def test_a_failed_fsync_refuses_the_entry_keeps_the_earlier_ones_and_goes_on_in_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    spool: Spool[None] = Spool(tmp_path, CAP)
    append(spool, b"first", None)
    disk.broken = True
    with pytest.raises(SpoolFull, match="refused"):
        append(spool, b"second", None)
    disk.broken = False
    append(spool, b"third", None)
    spool.close()
    assert contents(tmp_path) == [b"first", b"third"]


def test_what_no_longer_fits_in_memory_is_read_back_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "HELD_BYTES", 100)
    spool: Spool[None] = Spool(tmp_path, CAP)
    for i in range(5):
        append(spool, b"%d" % i * 30, None)
    segment = spool.roll()
    assert segment is not None
    assert segment.chunks is None
    assert spool.read(segment) == [[b"%d" % i * 30 for i in range(5)]]
    append(spool, b"next", None)
    second = spool.roll()
    assert second is not None
    assert second.chunks == [[None]]  # there is room again
    spool.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(["mark", "roll"])), max_size=20),
    st.integers(0, 200),
    st.binary(max_size=30),
)
def test_after_any_cut_of_the_last_file_exactly_the_whole_entries_before_it_come_back(
    tmp_path_factory: pytest.TempPathFactory, script: list[bytes | str], cut: int, noise: bytes
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool: Spool[None] = Spool(folder, CAP)
    written: list[list[bytes]] = [[]]
    for word in script:
        if word == "mark":
            spool.mark()
        elif word == "roll":
            if spool.roll():
                written.append([])
        elif isinstance(word, bytes):
            append(spool, word, None)
            written[-1].append(word)
    spool.close()
    files = sorted(folder.glob("*.segment"))
    if written[-1]:  # the crash: some of the last file is missing, or there is something after it
        data = files[-1].read_bytes()
        kept = data[: max(0, len(data) - cut)]
        whole = [payload for kind, payload, _ in frames(kept) if kind == ENTRY]
        assert whole == written[-1][: len(whole)]
        assert cut or whole == written[-1]
        written[-1] = whole
        files[-1].write_bytes(kept + (noise if list(frames(kept + noise)) == list(frames(kept)) else b""))
    expected = [payload for segment in written for payload in segment]
    assert contents(folder) == expected
    assert contents(folder) == expected  # the torn end was cut: a second start finds the same


def test_a_frame_is_refused_when_any_bit_of_it_is_wrong() -> None:
    frame = frame_of(ENTRY, b"payload")
    assert list(frames(frame)) == [(ENTRY, b"payload", len(frame))]
    for bit in range(len(frame) * 8):
        wrong = bytearray(frame)
        wrong[bit // 8] ^= 1 << bit % 8
        assert list(frames(bytes(wrong))) == [], bit
    assert [kind for kind, _, _ in frames(frame_of(MARK, b"") + frame)] == [MARK, ENTRY]


KILLED = """
import sys
from pathlib import Path
from pipeline.ingest.spool import Spool
spool = Spool(Path(sys.argv[1]), 1 << 30)
for i in range(10**6):
    append(spool, b"%d" % i + b"." * (i % 500), None)
    if i % 7 == 0: spool.mark()
    if i % 50 == 0: spool.roll()
    sys.stdout.write(f"{i}\\n"); sys.stdout.flush()
"""


def test_kill_9_loses_no_acknowledged_entry(tmp_path: Path) -> None:
    for n in range(3):
        folder = tmp_path / str(n)
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(120 + 37 * n)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        whole = [int(line) for line in acknowledged if line.endswith("\n")]
        found = [int(payload.split(b".")[0]) for payload in contents(folder)]
        assert found[: len(whole)] == whole
        assert found == list(range(len(found)))
        assert len(found) - len(whole) <= 1
