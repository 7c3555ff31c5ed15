"""A real ingest process on loopback, with the real store: what it accepts, what it refuses, and what survives kill -9."""

import gzip
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

from exporters.sending.sender import Sender
from exporters.sending.wire import LogLine, encode_line, encode_record, logs_request, resource
from pipeline.catalog.runs import ASKS
from pipeline.records import ActionTransition, AttemptTransition, Beat, Event, Live, Request, Step
from pipeline.secrets import store_password
from pipeline.settings import Settings
from pipeline.store import Store
from surefoot.drill.stack import free_ports

SERVE = "from pipeline.ingest.receivers import serve; from pipeline.settings import load; serve(load())"
TOKEN = "the-token-of-this-test"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
CAP = 100_000


class IngestProcess:
    """`surefoot ingest` in a process of its own, with state of its own, over a given store."""

    def __init__(self, folder: Path, store: Settings, port: int, extra: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        bare = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_") and not k.lower().endswith("_proxy")}
        self._environment = bare | {
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "SUREFOOT_STATE_DIR": str(folder),
            "SUREFOOT_STORE__PORT": str(store.store.port),
            "SUREFOOT_STORE__DATABASE": store.store.database,
            "SUREFOOT_STORE__PASSWORD": store_password(store),
            "SUREFOOT_STORE__URL": store.store_url,
            "SUREFOOT_INGEST__PORT": str(port),
            "SUREFOOT_INGEST__TOKEN": TOKEN,
            "SUREFOOT_INGEST__MAX_BODY_BYTES": str(CAP),
            **(extra or {}),
        }
        self.session = requests.Session()
        self.session.trust_env = False
        self.process = self._start()
        self.wait_until_up()

    def _start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-P", "-c", SERVE]
            return subprocess.Popen(command, env=self._environment, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)

    def wait_until_up(self) -> None:
        until(lambda: self.alive() and self.health() is not None)

    def alive(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
        return True

    def health(self) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self.session.get(f"{self.url}/healthz", timeout=60).json()
        except requests.RequestException:
            return None
        return answer

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def restart(self) -> None:
        self.process = self._start()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def post(self, path: str, body: bytes, content_type: str = PROTOBUF, **headers: str) -> requests.Response:
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type} | {k.replace("_", "-"): v for k, v in headers.items()}
        return self.session.post(self.url + path, data=body, headers=sent, timeout=60)

    def control(self, **question: str) -> requests.Response:
        given = {"run": "r", "node": "N1", "launch": "1", "state": "starting", "wait": "0"} | question
        return self.session.get(f"{self.url}/v1/control", params=given, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)

    def drained(self) -> None:
        """Waits until all that was sent is in the store: what the spool holds then was begun since (ingest's own beat)."""
        asked = time.monotonic()

        def is_drained() -> bool:
            since = time.monotonic() - asked
            health = self.health()
            return health is not None and (health["spool_age_seconds"] or 0.0) < since and health["store_up"]

        until(is_drained)


def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.02)


@pytest.fixture
def start_ingest(tmp_path: Path) -> Iterator[Callable[..., IngestProcess]]:
    started: list[IngestProcess] = []

    def start(store: Settings, **extra: str) -> IngestProcess:
        started.append(IngestProcess(tmp_path / f"ingest{len(started)}", store, free_ports(1)[0], extra))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()
        each.session.close()


@pytest.fixture
def ingest(start_ingest: Callable[..., IngestProcess], store_settings: Settings) -> IngestProcess:
    return start_ingest(store_settings)


def now() -> datetime:
    return datetime.now(UTC)


def event(ident: str) -> Event:
    return Event(id=ident, at=now(), kind="rank_exited", layer="framework", severity="info", run="r")


def body_of(*records: tuple[str, Any]) -> bytes:
    return logs_request(resource({"host.name": "n1"}), [encode_record(name, record) for name, record in records])


def event_body(*idents: str) -> bytes:
    return body_of(*(("surefoot.event", event(i)) for i in idents))


# --- in and out ------------------------------------------------------------------------------


def test_an_agents_rows_are_queryable_soon_and_a_clean_stop_stores_the_rest(ingest: IngestProcess, store: Store) -> None:
    sender = Sender(ingest.url, TOKEN, node="n1")
    at = now()
    step = Step(run="r", attempt="r-1", node="n1", rank=0, step=1, started_at=at, ended_at=at, forward=0.5)
    live = Live(run="r", attempt="r-1", node="n1", rank=0, at=at, pid=1, step=1)
    first = event("e1")
    sender.send_records([("surefoot.live", live), ("surefoot.step", step), ("surefoot.event", first)])
    until(lambda: store.query("SELECT 1 FROM events"))
    assert store.read(Event, "SELECT * FROM events") == [first]
    until(lambda: store.query("SELECT 1 FROM live"))
    sender.send_logs([LogLine(at, "a line", {"rank": 0})])
    until(lambda: sender.stats().sent.get("log") == 1)
    sender.close(30.0)
    assert ingest.stop() == 0
    assert store.read(Step, "SELECT * FROM steps") == [step]
    assert store.read(Live, "SELECT * FROM live") == [live]
    assert [row["Body"] for row in store.query("SELECT Body FROM logs")] == ["a line"]
    assert store.query("SELECT count() AS n FROM beats WHERE component = 'ingest'")[0]["n"] >= 1
    assert not list((ingest.folder / "spool").glob("*.segment"))


def test_the_official_exporter_gets_its_metrics_in(ingest: IngestProcess, store: Store) -> None:
    exporter = OTLPMetricExporter(f"{ingest.url}/v1/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    provider = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=600_000)])
    provider.get_meter("t").create_counter("jobs").add(7, {"queue": "a"})
    provider.shutdown()
    until(lambda: store.query("SELECT 1 FROM samples"))
    (row,) = store.query(
        "SELECT value, labels['queue'] AS queue FROM samples INNER JOIN series USING (metric, series) WHERE metric = 'jobs'"
    )
    assert row == {"value": 7.0, "queue": "a"}


def test_an_empty_request_is_fine_and_so_are_both_encodings_and_gzip(ingest: IngestProcess, store: Store) -> None:
    for path in ("/v1/metrics", "/v1/logs", "/v1/traces"):
        assert (ingest.post(path, b"").status_code, ingest.post(path, b"").content) == (200, b"")
        answer = ingest.post(path, b"{}", JSON)
        assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (200, {}, JSON)
    answer = ingest.post("/v1/logs", gzip.compress(event_body("e1")), Content_Encoding="gzip")
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    two = gzip.compress(event_body("e2")) + gzip.compress(event_body("e3"))  # two members are one body
    assert ingest.post("/v1/logs", two, Content_Encoding="gzip").status_code == 200
    until(lambda: len(store.query("SELECT id FROM events")) == 3)


# --- bad input -------------------------------------------------------------------------------


def test_bad_input_is_refused_with_its_reason_and_costs_nobody_else_anything(ingest: IngestProcess, store: Store) -> None:
    whole = event_body("e1")
    cases: list[tuple[int, str, requests.Response]] = [
        (400, "not a whole ExportLogsServiceRequest", ingest.post("/v1/logs", whole[:-4])),
        (400, "not a whole ExportMetricsServiceRequest", ingest.post("/v1/metrics", b"\x0a\xff")),
        (400, "the gzip body is damaged", ingest.post("/v1/logs", whole, Content_Encoding="gzip")),
        (400, "the gzip body is cut short", ingest.post("/v1/logs", gzip.compress(whole)[:-6], Content_Encoding="gzip")),
        (400, "must be 1 to 64", ingest.post("/v1/logs", whole, X_Surefoot_Batch="../..")),
        (413, f"larger than {CAP} bytes", ingest.post("/v1/logs", b"x" * (CAP + 1))),
        (413, "once decompressed", ingest.post("/v1/logs", gzip.compress(b"\0" * (50 * CAP)), Content_Encoding="gzip")),
        (415, "content encoding 'br'", ingest.post("/v1/logs", whole, Content_Encoding="br")),
        (415, "content type 'text/plain'", ingest.post("/v1/logs", whole, "text/plain")),
        (401, "bearer token", ingest.post("/v1/logs", whole, Authorization="Bearer wrong")),
        (401, "bearer token", ingest.post("/v1/logs", whole, Authorization="Basic " + TOKEN)),
        (401, "bearer token", ingest.post("/v1/logs", whole, Authorization="")),
    ]
    for status, reason, answer in cases:
        assert answer.status_code == status, reason
        assert answer.headers["content-type"] == PROTOBUF
        assert reason in Status.FromString(answer.content).message
    answer = ingest.post("/v1/logs", b'{"resourceLogs": 5}', JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (400, JSON)
    assert "not a ExportLogsServiceRequest in JSON" in answer.json()["message"]
    assert ingest.session.get(f"{ingest.url}/v1/control", timeout=10).status_code == 401
    assert ingest.control(state="dancing").status_code == 400
    assert ingest.post("/v1/logs", whole).status_code == 200
    until(lambda: store.query("SELECT id FROM events") == [{"id": "e1"}])
    assert ingest.alive()


def test_a_body_without_a_length_is_stopped_at_the_cap(ingest: IngestProcess) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": PROTOBUF}
    answer = ingest.session.post(f"{ingest.url}/v1/logs", data=(b"x" * 10_000 for _ in range(15)), headers=headers, timeout=60)
    assert answer.status_code == 413


def test_what_is_kept_only_in_part_is_said_and_the_rest_is_kept(ingest: IngestProcess, store: Store) -> None:
    ahead = Event(id="e2", at=now() + timedelta(hours=12), kind="phase", layer="framework", severity="info")
    answer = ingest.post("/v1/logs", body_of(("surefoot.event", event("e1")), ("surefoot.event", ahead)))
    assert answer.status_code == 200
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_log_records == 1
    assert "ahead of the receiver's clock" in partial.error_message
    spans = ExportTraceServiceRequest()
    spans.resource_spans.add().scope_spans.add().spans.add(name="a")
    answer = ingest.post("/v1/traces", spans.SerializeToString())
    assert (answer.status_code, ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans) == (200, 1)
    until(lambda: store.query("SELECT id FROM events") == [{"id": "e1"}])
    page = ingest.session.get(f"{ingest.url}/metrics", timeout=10).text
    assert 'surefoot_ingest_items_total{outcome="rejected",signal="logs"} 1.0' in page
    assert "surefoot_ingest_clock_skew_seconds 4319" in page or "surefoot_ingest_clock_skew_seconds 43200" in page


def test_the_same_request_sent_again_with_its_id_is_stored_once(ingest: IngestProcess, store: Store) -> None:
    body = event_body("e1")
    for _ in range(3):
        assert ingest.post("/v1/logs", body, X_Surefoot_Batch="b1").status_code == 200
    assert ingest.post("/v1/logs", body, X_Surefoot_Batch="b2").status_code == 200
    until(lambda: len(store.query("SELECT id FROM events")) == 2)
    ingest.drained()
    assert len(store.query("SELECT id FROM events")) == 2


def test_a_full_spool_answers_503_with_when_to_come_back_and_recovers(
    start_ingest: Callable[..., IngestProcess], start_store: Callable[..., Any]
) -> None:
    process = start_store()
    ingest = start_ingest(process.settings, SUREFOOT_INGEST__SPOOL_BYTES="20000")
    process.stop(signal.SIGKILL)
    answers = [ingest.post("/v1/logs", event_body(*(f"{i}.{n}" for n in range(10)))) for i in range(20)]
    codes = [answer.status_code for answer in answers]
    kept = codes.count(200)
    assert 0 < kept < 20
    assert set(codes) == {200, 503}
    assert answers[-1].headers["retry-after"] == "1"
    assert "of at most 20000 bytes; the store is behind" in Status.FromString(answers[-1].content).message
    health = ingest.health()
    assert health is not None
    assert 10_000 < health["spool_bytes"] <= 20_000
    back = start_store(process.settings.state_dir, process.settings.store.port)
    ingest.drained()
    assert ingest.post("/v1/logs", event_body("last")).status_code == 200
    store = back.connect("surefoot")
    until(lambda: store.query("SELECT 1 FROM events WHERE id = 'last'"))
    assert store.query("SELECT count() AS n, uniqExact(id) AS u FROM events") == [{"n": kept * 10 + 1, "u": kept * 10 + 1}]
    store.close()


# --- kill -9 ---------------------------------------------------------------------------------


class Client(threading.Thread):
    """Sends numbered requests until told to stop; repeats each with its id until it is acknowledged."""

    def __init__(self, ingest: IngestProcess, name: str) -> None:
        super().__init__(daemon=True)
        self._ingest = ingest
        self._session = requests.Session()
        self._session.trust_env = False
        self.prefix = name
        self.acknowledged = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            self._deliver(number)
            number += 1
        self._session.close()

    def _deliver(self, number: int) -> None:
        at = now()
        step = Step(run=self.prefix, attempt="a", node="n1", rank=0, step=number, started_at=at, ended_at=at)
        line = encode_line(LogLine(at, f"{self.prefix}.{number}"))
        records = [encode_record("surefoot.event", event(f"{self.prefix}.{number}")), encode_record("surefoot.step", step), line]
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": PROTOBUF, "X-Surefoot-Batch": uuid.uuid4().hex}
        body = logs_request(resource({"host.name": "n1"}), records)
        while True:
            try:
                answer = self._session.post(f"{self._ingest.url}/v1/logs", data=body, headers=headers, timeout=60)
            except requests.RequestException:
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                self.acknowledged += 1
                return
            assert answer.status_code == 503
            time.sleep(0.05)


def all_stored_once(store: Store, clients: list[Client]) -> None:
    sent = sum(c.acknowledged for c in clients)
    assert sent > 50
    assert store.query("SELECT count() AS n, uniqExact(id) AS u FROM events") == [{"n": sent, "u": sent}]
    assert store.query("SELECT count() AS n, uniqExact(run, step) AS u FROM steps") == [{"n": sent, "u": sent}]
    assert store.query("SELECT count() AS n, uniqExact(Body) AS u FROM logs") == [{"n": sent, "u": sent}]
    for client in clients:
        (row,) = store.query("SELECT max(step) AS last FROM steps WHERE run = {run:String}", {"run": client.prefix})
        assert row["last"] == client.acknowledged - 1


def stream(ingest: IngestProcess, meanwhile: Callable[[Callable[[], None]], None]) -> list[Client]:
    """Clients that send while `meanwhile` does what it does; what it is given waits until each was acknowledged some times more."""
    clients = [Client(ingest, name) for name in "abcd"]

    def flow() -> None:
        wanted = [client.acknowledged + 5 for client in clients]
        until(lambda: all(client.acknowledged >= n for client, n in zip(clients, wanted, strict=True)))

    for client in clients:
        client.start()
    meanwhile(flow)
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(60)
        assert not client.is_alive()
    return clients


def test_kill_9_of_ingest_in_the_middle_of_a_stream_loses_nothing_and_stores_nothing_twice(ingest: IngestProcess, store: Store) -> None:
    def kill_it_three_times(flow: Callable[[], None]) -> None:
        for pause in (0.35, 0.8, 1.3):  # between, before and after its batches
            flow()
            time.sleep(pause)
            ingest.kill()
            ingest.restart()
            ingest.wait_until_up()
        flow()

    clients = stream(ingest, kill_it_three_times)
    ingest.drained()
    all_stored_once(store, clients)


def test_kill_9_of_the_store_in_the_middle_of_a_stream_loses_nothing_and_stores_nothing_twice(
    start_ingest: Callable[..., IngestProcess], start_store: Callable[..., Any]
) -> None:
    process = start_store()
    ingest = start_ingest(process.settings)

    def kill_the_store_twice(flow: Callable[[], None]) -> None:
        running = process
        for pause in (0.45, 1.1):
            flow()
            time.sleep(pause)
            running.stop(signal.SIGKILL)
            running = start_store(process.settings.state_dir, process.settings.store.port)
        flow()

    clients = stream(ingest, kill_the_store_twice)
    ingest.drained()
    store = Store.connect(process.settings)
    all_stored_once(store, clients)
    store.close()
    assert not list((ingest.folder / "spool" / "quarantine").iterdir())


def test_ingest_starts_and_acknowledges_while_the_store_is_away(
    start_ingest: Callable[..., IngestProcess], start_store: Callable[..., Any]
) -> None:
    process = start_store()
    process.stop()
    ingest = start_ingest(process.settings)
    assert ingest.post("/v1/logs", event_body("e1")).status_code == 200
    assert ingest.control().status_code == 503
    assert ingest.stop() == 0
    assert list((ingest.folder / "spool").glob("*.segment"))
    ingest.restart()
    back = start_store(process.settings.state_dir, process.settings.store.port)
    store = back.connect("surefoot")
    until(lambda: store.query("SELECT id FROM events") == [{"id": "e1"}])
    store.close()


# --- control ---------------------------------------------------------------------------------

ACTION = ActionTransition(
    old_state="waiting",
    new_state="issued",
    reason="rank 1 died",
    actor="leader",
    at=datetime(2026, 10, 1, tzinfo=UTC),
    action="a1",
    key="k",
    kind="restart_run",
    mode="auto",
    term=7,
    run="r",
    attempt="r-1",
    new_attempt="r-2",
    launch=2,
    deadline=datetime(2026, 10, 1, 12, 0, 0, 250_000, tzinfo=UTC),
)


def test_a_launcher_that_waits_hears_of_its_attempt_and_its_action_and_leaves_beats(ingest: IngestProcess, store: Store) -> None:
    attempt = AttemptTransition(old_state="", new_state="issued", reason="", actor="l", at=now(), run="r", attempt="r-1", launch=1)
    timer = threading.Timer(0.5, store.insert, ([attempt],), {"token": "1"})
    began = time.monotonic()
    timer.start()
    answer = ingest.control(wait="20")
    given = {"id": "r-1", "launch": 1, "nodes": [], "master": "", "resume": ""}
    assert answer.json() == {"term": 0, "attempt": given, "requests": [], "end": "", "without": ""}
    assert 0.4 < time.monotonic() - began < 15
    timer.join()
    until(lambda: store.query("SELECT 1 FROM beats WHERE component = 'launcher'"))
    store.insert([ACTION], token="2")
    running = {"attempt": "r-1", "state": "running", "ranks": "0:alive:4711"}
    answer = ingest.control(wait="10", **running)
    (request,) = answer.json()["requests"]
    assert (request["id"], request["new_attempt"], request["deadline_us"], answer.json()["term"]) == ("a1", "r-2", 1_790_856_000_250_000, 7)
    assert ingest.control(seen="a1", **running).json() == {"term": 7, "attempt": None, "requests": [], "end": "", "without": ""}
    until(lambda: len(store.query("SELECT 1 FROM beats WHERE component = 'launcher'")) >= 2)
    beats = store.read(Beat, "SELECT * FROM beats WHERE component = 'launcher' ORDER BY at")
    assert [(b.node, b.state, b.attempt, b.ranks) for b in beats[:2]] == [
        ("n1", "starting", "", ""),
        ("n1", "running", "r-1", "0:alive:4711"),
    ]


def test_a_second_launcher_under_one_name_is_refused_until_the_firsts_connection_breaks_and_leaves_no_sign_of_life(
    ingest: IngestProcess, store: Store
) -> None:
    first = {"instance": "one", "nodes": "2"}
    assert ingest.control(**first).status_code == 200
    refused = ingest.control(instance="two", nodes="2", state="starting", launch="5")
    assert refused.status_code == 409
    assert refused.json()["message"].startswith(
        "another launcher of run r is heard under the node name n1: give each node a name of its own"
    )
    other = ingest.control(instance="two", node="n2", nodes="3")
    assert (other.status_code, "with --nodes 2 on n1, and with --nodes 3 here" in other.json()["message"]) == (409, True)

    query = "&".join(f"{k}={v}" for k, v in {"run": "r", "node": "n1", "launch": "1", "state": "starting", "wait": "20", **first}.items())
    port = int(ingest.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as killed:  # as a launcher that is killed in the middle of a call
        head = f"GET /v1/control?{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        killed.sendall(head.encode())
        time.sleep(ASKS + 0.5)
        assert ingest.control(instance="two", nodes="2").status_code == 409, "it is heard while its call is held"
    began = time.monotonic()
    until(lambda: ingest.control(instance="two", nodes="2").status_code == 200, ASKS)
    assert time.monotonic() - began < 3.0
    ingest.drained()
    launches = store.query("SELECT DISTINCT node, launch FROM beats WHERE component = 'launcher'")
    assert launches == [{"node": "n1", "launch": 1}]


def test_a_call_that_was_given_up_while_ingest_stood_still_is_no_sign_of_life_when_it_wakes(ingest: IngestProcess, store: Store) -> None:
    ingest.control(node="first")
    ingest.drained()
    port = int(ingest.url.rpartition(":")[2])
    ingest.process.send_signal(signal.SIGSTOP)
    for number, state in enumerate(["starting"] * 20 + ["gone"]):
        with socket.create_connection(("127.0.0.1", port)) as given_up:
            query = f"run=r&node={state}-{number}&launch=1&state={state}&wait=1&nodes=2"
            given_up.sendall(f"GET /v1/control?{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    ingest.process.send_signal(signal.SIGCONT)
    assert ingest.control(node="last", run="s").status_code == 200
    ingest.drained()
    heard = store.query("SELECT DISTINCT node FROM beats WHERE component = 'launcher' ORDER BY node")
    assert [row["node"] for row in heard] == ["first", "gone-20", "last"], "a last word is true though nobody waits for the answer"


def test_a_stop_lets_launchers_that_wait_go_at_once(ingest: IngestProcess, store: Store) -> None:
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(ingest.control(wait="20").status_code))
    waiting.start()
    until(lambda: store.query("SELECT 1 FROM beats WHERE component = 'launcher'"))
    began = time.monotonic()
    assert ingest.stop() == 0
    waiting.join()
    assert answers == [200]
    assert time.monotonic() - began < 15


def test_an_acknowledgement_from_pagerduty_is_one_request_however_often_it_comes_and_whatever_dies(
    start_ingest: Callable[..., IngestProcess], store: Store, store_settings: Settings
) -> None:
    ingest = start_ingest(store_settings, SUREFOOT_INGEST__PAGERDUTY_SECRET="whsec")
    agent, data = {"type": "user_reference", "summary": "Bob"}, {"incident_key": "5f0c"}
    body = json.dumps({"event": {"id": "01BZ", "event_type": "incident.acknowledged", "agent": agent, "data": data}}).encode()
    sign = "v1=" + hmac.new(b"whsec", body, "sha256").hexdigest()
    assert ingest.post("/v1/pagerduty", body, JSON).status_code == 401
    assert ingest.post("/v1/pagerduty", body, JSON, X_PagerDuty_Signature=sign).status_code == 200
    ingest.kill()
    ingest.restart()
    ingest.wait_until_up()
    assert ingest.post("/v1/pagerduty", body, JSON, X_PagerDuty_Signature=sign).status_code == 200
    until(lambda: store.query("SELECT count() AS n FROM requests")[0]["n"])
    ingest.drained()
    asked = store.read(Request, "SELECT * FROM requests")
    assert [(r.kind, r.target, r.actor) for r in asked] == [("acknowledge", "5f0c", "Bob (PagerDuty)")]


def test_a_second_ingest_on_the_same_port_says_what_to_do(ingest: IngestProcess) -> None:
    second = subprocess.run(
        [sys.executable, "-P", "-c", SERVE], env=ingest._environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert second.returncode != 0
    where = ingest.url.removeprefix("http://")
    assert f"ingest cannot use {where} (Address already in use): set ingest.port in the settings" in second.stderr
    assert json.loads(ingest.control().text)["requests"] == []
