"""A sender in a process of its own, through outages, lost answers and kill -9: what it called settled reaches ingest, once."""

import gzip
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

ROOT = Path(__file__).parents[2]
# Lines on stdin: a number is that many events and ordinary lines; on stdout: the number of the last part that is settled.
CHILD = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from exporters.sending import backlog, sender
from exporters.sending.buffer import DiskBuffer
from exporters.sending.wire import LogLine
backlog.AFTER, backlog.EVERY, backlog.EVERY_LASTING, backlog.LONGEST = 0.02, 0.05, 0.01, 0.02
url, folder, first = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
one = sender.Sender(url, "t", 1.0, node="n", flush_interval=0.01, buffer=DiskBuffer(folder, 1 << 30, 86400.0, spare=0))
at = datetime(2026, 11, 30, tzinfo=UTC)
for line in sys.stdin:
    if line.strip() == "drained":
        while one.settled < one.queued or any(folder.glob("*")):
            time.sleep(0.005)
    else:
        one.send_logs([LogLine(at, str(first + one.queued + n)) for n in range(int(line))])
        one.flush()
    print(one.settled, flush=True)
"""


class Ingest(http.server.ThreadingHTTPServer):
    """Stores what comes, unless it is `away`; may store it and lose the answer."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = "up"
        self.batches: dict[str, list[str]] = {}
        self.changed: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Ingest
    timeout = 30.0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode = self.server.mode
        if mode != "away":
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            batch, read = str(self.headers["X-Surefoot-Batch"]), ExportLogsServiceRequest.FromString(body)
            parts = [log.body.string_value for rl in read.resource_logs for sl in rl.scope_logs for log in sl.log_records]
            if self.server.batches.setdefault(batch, parts) != parts:
                self.server.changed.append(batch)
        self.send_response(200 if mode == "up" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("outages")


class Node:
    """The sender's process, one after the other; `given` is what it was given, `safe` what it said was settled."""

    def __init__(self, ingest: Ingest, folder: Path) -> None:
        self._ingest, self._folder = ingest, folder
        self._first = 1
        self.given: list[str] = []
        self.safe: set[str] = set()
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-c", CHILD, self._ingest.url, str(self._folder), str(self._first)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}
        self._child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line: str) -> None:
        assert self._child.stdin and self._child.stdout
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        settled = int(self._child.stdout.readline())
        self.safe |= {str(number) for number in range(self._first, self._first + settled)}

    def give(self, count: int) -> None:
        self.given += [str(len(self.given) + 1 + n) for n in range(count)]
        self.say(str(count))

    def kill(self, *, again: bool = True) -> None:
        self._child.kill()
        self._child.wait(30)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                pipe.close()
        self._first = len(self.given) + 1
        if again:
            self._start()


STEPS = st.lists(st.one_of(st.sampled_from(["up", "away", "lost answers", "kill", "wait"]), st.integers(1, 20)), min_size=3, max_size=14)


def lived_through(steps: list[str | int], folder: Path) -> None:
    ingest = Ingest()
    threading.Thread(target=ingest.serve_forever, args=(0.01,), daemon=True).start()
    node = Node(ingest, folder)
    try:
        for step in steps:
            if step == "kill":
                node.kill()
            elif step == "wait":
                time.sleep(0.08)
            elif isinstance(step, int):
                node.give(step)
            else:
                ingest.mode = str(step)
        ingest.mode = "up"
        node.say("drained")
    finally:
        node.kill(again=False)
        ingest.shutdown()
        ingest.server_close()
    stored = [part for parts in ingest.batches.values() for part in parts]
    assert ingest.changed == [], "a batch that is sent again is the same"
    assert len(stored) == len(set(stored)), "nothing is in two batches"
    assert set(stored) >= node.safe, "what was settled is there"
    assert not list(folder.glob("*"))


@settings(max_examples=4, deadline=None, derandomize=True)
@example(steps=["away", 5, "wait", "kill", 3, "wait", "lost answers", 4, "wait", "kill", "wait", 2])
@example(steps=[3, "lost answers", 7, "kill", "away", 9, "wait", "kill", "wait", "up", "wait", 1])
@given(steps=STEPS)
def test_outages_and_kills_lose_nothing_that_was_settled_and_store_nothing_twice(steps: list[str | int], folders: Path) -> None:
    lived_through(steps, folders / f"{time.monotonic_ns()}")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_many_more_of_them(steps: list[str | int], folders: Path) -> None:
    lived_through(steps, folders / f"{time.monotonic_ns()}")


def test_what_waited_on_disk_is_sent_in_its_order(tmp_path: Path) -> None:
    ingest = Ingest()
    threading.Thread(target=ingest.serve_forever, args=(0.01,), daemon=True).start()
    ingest.mode = "away"
    node = Node(ingest, tmp_path / "b")
    try:
        for number in range(6):
            node.give(1)
            end = time.monotonic() + 20
            while len(list((tmp_path / "b").glob("[!.]*"))) <= number and time.monotonic() < end:
                time.sleep(0.01)
        names = [path.name.split("-")[-1].split(".")[0] for path in sorted((tmp_path / "b").iterdir())]
        node.kill()
        ingest.mode = "up"
        node.say("drained")
    finally:
        node.kill(again=False)
        ingest.shutdown()
        ingest.server_close()
    assert list(ingest.batches) == names
    assert [part for parts in ingest.batches.values() for part in parts] == node.given
