"""Goal 4: rows into the store through pipeline.store, against the engine's own INSERT SELECT of the same rows.

Both into tables of the same columns, order, codecs and fsync, in the embedded store, over its HTTP. Ours starts
at Python rows and includes turning them into Arrow; the peer's rows are in a Memory table already.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import Goal, Result, compare

ROWS = 360_000
METRICS, SERIES = 30, 3000
SERVE = "from pipeline.embedded.process import serve; from pipeline.settings import load; serve(load())"
PEER = """CREATE TABLE peer AS samples ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY (metric, series, ts)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"""


def run() -> Iterator[Result]:
    """One line; skipped where the embedded store is not installed."""
    try:
        import chdb  # noqa: F401
    except ImportError as e:
        yield Result.skip("insert", str(e))
        return
    with TemporaryDirectory(prefix="surefoot-bench-") as folder, _store(Path(folder)) as store:
        rows = _rows()
        number = count()
        store.command(PEER)
        store.command("CREATE TABLE source AS samples ENGINE = Memory")
        store.insert_rows("samples", rows, token="first")
        store.command("INSERT INTO source SELECT * FROM samples")

        def ours() -> float:
            store.command("TRUNCATE TABLE samples")
            began = time.perf_counter()
            store.insert_rows("samples", rows, token=f"bench-{next(number)}")
            return ROWS / (time.perf_counter() - began)

        def peer() -> float:
            store.command("TRUNCATE TABLE peer")
            began = time.perf_counter()
            store.command("INSERT INTO peer SELECT * FROM source")
            return ROWS / (time.perf_counter() - began)

        what = f"insert_rows of {ROWS:,} samples : INSERT SELECT in the engine"
        yield compare("insert", what, ours, peer, Goal(0.75, ">="), lambda rate: f"{rate / 1000:.0f}k/s", repeats=7)


def _rows() -> list[dict[str, Any]]:
    """Samples of 3,000 series, as ingest has them: each row names its metric."""
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    times = [start + timedelta(seconds=10 * n) for n in range(ROWS // SERIES)]
    return [
        {"metric": f"metric_{series % METRICS}", "series": series * 2_654_435_761, "ts": ts, "value": (series * 7919 + n * 31) % 1000 / 8}
        for n, ts in enumerate(times)
        for series in range(SERIES)
    ]


@contextmanager
def _store(state_dir: Path) -> Iterator[Any]:
    """A Store on an embedded store process of its own."""
    from pipeline.settings import Settings, StoreSettings

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = Settings(state_dir=state_dir, store=StoreSettings(port=port))
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}
    environ |= {"SUREFOOT_STATE_DIR": str(state_dir), "SUREFOOT_STORE__PORT": str(port)}
    with (state_dir / "store.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-P", "-c", SERVE], env=environ, stdout=log, stderr=log)
    try:
        store = _connected(settings, process)
        yield store
        store.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _connected(settings: Any, process: subprocess.Popen[bytes]) -> Any:
    from pipeline.store import Store

    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((settings.store.host, settings.store.port)) == 0:
                break
        time.sleep(0.1)
    return Store.connect(settings)
