"""`surefoot store` as a process: who owns the folder, how it stops, and what survives when it is killed."""

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import utcnow
from pipeline.embedded.process import serve
from pipeline.errors import DatabaseOwned, StoreError, StoreUnavailable, StreamFailure
from pipeline.store import Store

Start = Callable[..., Any]  # gives a StoreProcess of tests/conftest.py


def rows(count: int, batch: int) -> list[dict[str, object]]:
    return [{"job": f"batch-{batch}", "at": utcnow(), "value": str(i)} for i in range(count)]


def await_query(store: Store, start: str, *, read: int = 0) -> None:
    """Waits until a query that begins with `start` runs and has read so many rows."""
    running = "SELECT 1 FROM system.processes WHERE startsWith(query, {start:String}) AND read_rows >= {read:UInt64}"
    deadline = time.monotonic() + 60
    while not store.query(running, {"start": start, "read": read}):
        assert time.monotonic() < deadline, f"{start} does not run"
        time.sleep(0.01)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_store_serves_migrated_tables_and_keeps_its_secret_to_its_owner(start_store: Start) -> None:
    running = start_store()
    store = running.connect("surefoot")
    assert store.query("SELECT count() AS n FROM steps") == [{"n": 0}]
    store.close()
    secret = running.settings.state_dir / "store.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE((running.settings.state_dir / "store").stat().st_mode) == 0o700


def test_a_second_owner_is_refused_with_path_and_pid(start_store: Start) -> None:
    first = start_store()
    with pytest.raises(DatabaseOwned) as caught:
        serve(first.settings)
    assert str(first.settings.state_dir / "store") in str(caught.value)
    assert str(first.process.pid) in str(caught.value)
    assert first.process.poll() is None


def test_a_folder_that_another_process_opened_past_the_lock_is_refused_too(start_store: Start) -> None:
    first = start_store()
    folder = first.settings.state_dir / "store"
    opening = f"Engine(Path({str(folder)!r}), memory_bytes=1 << 29, query_seconds=5)"
    code = f"from pathlib import Path; from pipeline.embedded.engine import Engine; {opening}"
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert DatabaseOwned.__name__ in second.stderr


def test_a_taken_port_is_named(start_store: Start, tmp_path: Path) -> None:
    first = start_store()
    second = start_store(tmp_path / "other", first.settings.store.port, wait=0)
    assert second.process.wait(60) == 1
    assert str(first.settings.store.port) in second.log.read_text()
    assert StoreUnavailable.__name__ in second.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_after_the_running_requests(start_store: Start, number: int) -> None:
    running = start_store()
    idle, busy = running.connect(), running.connect()
    idle.query("SELECT 1")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(busy.query, "SELECT sleep(2) AS s")
        await_query(idle, "SELECT sleep(2)")
        began = time.monotonic()
        assert running.stop(number) == 0
        assert time.monotonic() - began < 20
        assert answer.result() == [{"s": 0}]
    with pytest.raises(StoreUnavailable):
        idle.query("SELECT 1")
    idle.close()
    busy.close()


def test_after_a_kill_a_new_owner_starts_at_once_and_finds_the_rows(start_store: Start) -> None:
    first = start_store()
    store = first.connect("surefoot")
    store.insert_rows("watermarks", rows(3, 1), token="1")
    store.close()
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    second = start_store(first.settings.state_dir)
    store = second.connect("surefoot")
    assert store.query("SELECT count() AS n FROM watermarks") == [{"n": 3}]
    store.close()


def test_kill_9_during_inserts_loses_no_acknowledged_row_and_doubles_none(start_store: Start) -> None:
    count, acknowledged, batch = 500, 0, 0
    running = start_store()
    for _ in range(3):
        store = running.connect("surefoot")
        killer, first = threading.Timer(random.random() / 5, running.process.kill), batch
        try:
            while True:
                store.insert_rows("watermarks", rows(count, batch), token=f"batch-{batch}")
                acknowledged = batch = batch + 1
                if batch == first + 2:
                    killer.start()
        except StoreError as e:
            assert not e.permanent
        killer.join()
        running.process.wait(30)
        store.close()
        running = start_store(running.settings.state_dir, running.settings.store.port)
        store = running.connect("surefoot")
        store.insert_rows("watermarks", rows(count, batch), token=f"batch-{batch}")  # the sender's retry
        acknowledged = batch = batch + 1
        per_batch = store.query("SELECT job, count() AS n FROM watermarks GROUP BY job")
        assert {row["n"] for row in per_batch} == {count}
        assert len(per_batch) == acknowledged
        store.close()
    assert acknowledged > 6


def test_an_insert_killed_between_its_token_and_its_rows_is_stored_when_it_is_sent_again(start_store: Start) -> None:
    """What such a kill leaves is made by hand, since the moment is short: the token noted, the part not in its place."""
    first = start_store()
    store = first.connect("surefoot")
    store.command("SYSTEM STOP MERGES watermarks")
    for batch in range(3):
        store.insert_rows("watermarks", rows(3, batch), token=f"{batch}")
    where = store.query("SELECT path FROM system.parts WHERE table = 'watermarks' AND active ORDER BY min_block_number")
    store.close()
    assert first.stop(signal.SIGTERM) == 0
    shutil.rmtree(where[-1]["path"])
    second = start_store(first.settings.state_dir)
    store = second.connect("surefoot")
    for batch in range(3):
        store.insert_rows("watermarks", rows(3, batch), token=f"{batch}")
    found = store.query("SELECT job, count() AS n FROM watermarks GROUP BY job ORDER BY job")
    assert [row["n"] for row in found] == [3, 3, 3], "the first two once, as their retry is one; the third, which was lost, now"
    store.close()


def test_an_answer_cut_off_by_a_kill_is_a_stream_failure(start_store: Start) -> None:
    running = start_store()
    store, other = running.connect(), running.connect()

    def kill_in_the_middle() -> None:
        await_query(other, "SELECT number, toString", read=3_000_000)  # more than what lies between the two at a time
        running.process.kill()

    with ThreadPoolExecutor(1) as pool:
        killer = pool.submit(kill_in_the_middle)
        with pytest.raises(StreamFailure):
            store.query("SELECT number, toString(number) FROM numbers(1000000000)")
        killer.result()
    store.close()
    other.close()


def test_a_store_reconnects_by_itself_after_a_restart(start_store: Start) -> None:
    first = start_store()
    store = first.connect("surefoot")
    store.insert_rows("watermarks", rows(1, 1), token="1")
    first.stop(signal.SIGKILL)
    start_store(first.settings.state_dir, first.settings.store.port)
    assert retried(store) == [{"n": 1}]
    store.close()


def retried(store: Store) -> list[dict[str, object]]:
    """One retry is what any caller does with an error that is not permanent."""
    try:
        return store.query("SELECT count() AS n FROM watermarks")
    except StoreUnavailable:
        return store.query("SELECT count() AS n FROM watermarks")


def test_a_result_larger_than_memory_streams_with_bounded_memory(start_store: Start) -> None:
    running = start_store()
    before = resident(running.process.pid)
    code = (
        "import sys, urllib.request as u\n"
        f"r = u.Request({running.url!r}, b\"SELECT repeat('x', 100) FROM numbers(10000000) FORMAT RowBinary\","
        f" {{'X-ClickHouse-Key': {running.password!r}}})\n"
        "print(sum(len(p) for p in iter(lambda a=u.urlopen(r): a.read(1 << 20), b'')))"
    )
    reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    peak = before
    while reader.poll() is None:
        peak = max(peak, resident(running.process.pid))
        time.sleep(0.05)
    assert reader.communicate()[0].strip() == str(101 * 10_000_000)
    assert peak - before < 300 << 20
