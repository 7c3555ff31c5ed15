"""A hand-written peer: ingest as the launcher sees it, over real HTTP on a free port. And a way to start real launchers."""

import contextlib
import gzip
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse

TOKEN = "test-token"
MAIN = """
import sys
import structlog
structlog.configure(
    logger_factory=structlog.PrintLoggerFactory(sys.stderr), wrapper_class=structlog.make_filtering_bound_logger("warning")
)  # what the launcher says of itself would stand between the command's own lines
from pathlib import Path
from exporters.job.entry import run
from pipeline.settings import load
run_id, checkpoints, *command = sys.argv[1:]
sys.exit(run(load(), command, run_id=run_id or None, checkpoints=Path(checkpoints) if checkpoints else None))
"""


def value(any_value: Any) -> Any:
    """A protobuf AnyValue as Python."""
    kind = any_value.WhichOneof("value")
    if kind == "kvlist_value":
        return {kv.key: value(kv.value) for kv in any_value.kvlist_value.values}
    return getattr(any_value, kind) if kind else None


@dataclass
class Received:
    """One log record that reached the peer: `name` is its EventName ("" for a printed line)."""

    name: str
    body: str
    attributes: dict[str, Any]
    seconds: float  # monotonic, at arrival


@dataclass
class Plane:
    """The peer's state. `issue` set: attempts are issued as launchers ask for one."""

    issue: bool = True
    term: int = 7
    away: bool = False
    full: bool = False  # it answers, and keeps nothing
    refusal: tuple[int, str] | None = None  # status and body that questions are answered with
    first: int = 1  # the least launch that is not used up
    refused_at: list[float] = field(default_factory=list)
    calls: list[dict[str, str]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)  # of several, that attempts are issued for
    repeat: bool = False  # keep offering requests that were seen
    changed: threading.Condition = field(default_factory=threading.Condition)
    port: int = 0

    def ask(self, kind: str, attempt: str = "r-1", **more: Any) -> str:
        """Asks something of the launcher; gives the request's id."""
        with self.changed:
            number = f"a{len(self.requests) + 1}"
            given = {"id": number, "kind": kind, "attempt": attempt, "term": self.term, "grace": 0.0, "reason": f"test asks for {kind}"}
            given["deadline_us"] = int((time.time() + 30) * 1e6)
            self.requests.append(given | more)
            self.changed.notify_all()
        return number

    def until(self, what: Callable[["Plane"], Any], seconds: float = 60.0) -> Any:
        """Waits for something true of the peer, and gives it."""
        with self.changed:
            found = self.changed.wait_for(lambda: what(self), seconds)
        assert found, f"not within {seconds} s; states {self.states()}, events {[(e['kind'], e.get('code')) for e in self.events()]}"
        return found

    def records(self, name: str) -> list[dict[str, Any]]:
        return [r.attributes for r in list(self.received) if r.name == name]

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        return [e for e in self.records("surefoot.event") if kind in ("", e["kind"])]

    def lines(self) -> list[Received]:
        return [r for r in list(self.received) if r.name == ""]

    def states(self, table: str = "attempts") -> list[tuple[str, str, str]]:
        """(attempt or run, old, new) in the order of arrival."""
        key = "attempt" if table == "attempts" else "run"
        return [(t[key], t["old_state"], t["new_state"]) for t in self.records("surefoot.transition") if t["table"] == table]

    def transitions(self, new_state: str, table: str = "attempts") -> list[dict[str, Any]]:
        return [t for t in self.records("surefoot.transition") if t["table"] == table and t["new_state"] == new_state]

    def progress(self, action: str) -> list[str]:
        return [e["code"] for e in self.events("action_progress") if e["attrs"]["action"] == action]

    def pid(self, rank: int, attempt: str = "r-1") -> int:
        """The pid of a rank, once it was seen."""

        def found(plane: "Plane") -> list[int]:
            return [int(e["attrs"]["pid"]) for e in plane.events("rank_started") if (e["rank"], e["attempt"]) == (rank, attempt)]

        return int(self.until(found)[-1])

    # --- what the server asks -------------------------------------------------------------

    def answer(self, call: dict[str, str]) -> dict[str, Any]:
        deadline = time.monotonic() + min(20.0, float(call["wait"]))
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()
            seen = set(filter(None, call["seen"].split(",")))
            while True:
                wanted = [r for r in self.requests if self.repeat or r["id"] not in seen]
                launch = max(self.first, int(call["launch"]))
                attempt = {"id": f"{call['run']}-{launch}", "launch": launch} if self.issue and not call["attempt"] else None
                if attempt and self.nodes:
                    attempt |= {"nodes": self.nodes, "master": "10.0.0.1"}
                left = deadline - time.monotonic()
                if wanted or attempt or left <= 0:
                    return {"term": self.term, "attempt": attempt, "requests": wanted}
                self.changed.wait(left)

    def take(self, body: bytes) -> None:
        now = time.monotonic()
        message = ExportLogsServiceRequest.FromString(body)
        records = [r for resource in message.resource_logs for scope in resource.scope_logs for r in scope.log_records]
        with self.changed:
            for r in records:
                self.received.append(Received(r.event_name, r.body.string_value, {kv.key: value(kv.value) for kv in r.attributes}, now))
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plane: Plane

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a launcher that is gone
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.plane.refusal:
            self.plane.refused_at.append(time.monotonic())
            self._reply(self.plane.refusal[0], self.plane.refusal[1].encode())
        elif self._allowed():
            self._reply(200, json.dumps(self.plane.answer(dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)))).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.plane.full:
            self._reply(503, b"")
        elif self._allowed():
            self.plane.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self._reply(200, ExportLogsServiceResponse().SerializeToString())

    def _allowed(self) -> bool:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._reply(401, b"")
            return False
        if self.plane.away:
            self._reply(503, b"")
            return False
        return True

    def _reply(self, status: int, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


@pytest.fixture
def plane() -> Iterator[Plane]:
    """The peer, serving."""
    state = Plane()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"plane": state}))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Started:
    """A running launcher."""

    process: subprocess.Popen[bytes]
    plane: Plane
    folder: Path

    def wait(self, seconds: float = 60.0) -> int:
        """Its exit code."""
        return self.process.wait(seconds)

    def output(self, seconds: float = 60.0) -> tuple[bytes, bytes]:
        """Its stdout and stderr, to the end."""
        return self.process.communicate(timeout=seconds)


Launch = Callable[..., Started]
Script = Callable[[str], list[str]]
Ranked = Callable[[int, str], list[str]]


@pytest.fixture
def launch(plane: Plane, tmp_path: Path) -> Iterator[Launch]:
    """Starts `surefoot run` with a command: launch("sh", "-c", "exit 3", run="r", checkpoints=None, **environment)."""
    started: list[Started] = []

    def start(
        *command: str, run: str = "r", checkpoints: Path | None = None, port: int | None = None, merged: bool = False, **environment: str
    ) -> Started:
        given = {
            "SUREFOOT_INGEST__URL": f"http://127.0.0.1:{port or plane.port}",
            "SUREFOOT_INGEST__TOKEN": TOKEN,
            "SUREFOOT_STATE_DIR": str(tmp_path / "state"),
            "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
            "SUREFOOT_NODE": "node-a",
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", MAIN, run, str(checkpoints or ""), *command],
            env=os.environ | given | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        )
        started.append(Started(process, plane, tmp_path))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.terminate()
            try:
                one.process.wait(10)
            except subprocess.TimeoutExpired:
                one.process.kill()
        for stream in (one.process.stdout, one.process.stderr):
            if stream:
                stream.close()
        one.process.wait()


FAKE_TORCHRUN = """
import os, signal, subprocess, sys, time
n, *command = sys.argv[1:]
n = int(n)
ranks = [
    subprocess.Popen(
        [sys.executable, "-S", *command],
        env=os.environ | {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n)},
        start_new_session=True,
    )
    for r in range(n)
]
while all(r.poll() is None for r in ranks):
    time.sleep(0.02)
if any(r.poll() for r in ranks):
    for r in ranks:
        if r.poll() is None:
            print(f"Sending process {r.pid} closing signal SIGTERM", file=sys.stderr, flush=True)
            r.terminate()
sys.exit(1 if any([r.wait() for r in ranks]) else 0)
"""


@pytest.fixture
def ranked(script: Callable[[str], list[str]], tmp_path: Path) -> Callable[[int, str], list[str]]:
    """A command that runs a script as so many ranks, each in its own session, as torchrun does; it ends the others when one fails.

    By its name it is known for a launcher of ranks, and is not taken for one itself however long they take to start.
    """

    def make(ranks: int, text: str) -> list[str]:
        torchrun = tmp_path / "torchrun"
        torchrun.write_text(FAKE_TORCHRUN, encoding="utf-8")
        return [sys.executable, "-S", str(torchrun), str(ranks), script(text)[-1]]

    return make


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    """A Python script as a command."""
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()

    def make(text: str) -> list[str]:
        numbers.put(0)
        path = tmp_path / f"script{numbers.qsize()}.py"
        path.write_text(text, encoding="utf-8")
        return [sys.executable, "-S", str(path)]

    return make
