"""The sender against a real HTTP server that behaves well and badly."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exporters.sending import wire
from exporters.sending.outgoing import OVERHEAD, Outgoing, Signal
from exporters.sending.sender import MAX_REQUEST, Sender
from exporters.sending.verdict import retry_after
from pipeline.records import AttemptTransition, Event, Live, Record, Step
from surefoot.drill.stack import free_ports

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
EVENT = Event(id="e1", at=AT, kind="phase", layer="framework", severity="info", node="n1", code="init", duration=1.5, attrs={"path": "/x"})
STEP = Step(run="r", attempt="r-1", node="n1", rank=0, step=7, started_at=AT - timedelta(seconds=1), ended_at=AT, forward=0.25, loss=2.5)
LIVE = Live(run="r", attempt="r-1", node="n1", rank=0, at=AT, pid=42, step=7)


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Polls until `condition` holds; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


class Receiver:
    """What a server got; `answers` are given in turn, then 200."""

    def __init__(self, server: HTTPServer) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[Response] = []
        server.expect_request("/v1/logs", method="POST").respond_with_handler(self._answer)
        server.expect_request("/v1/metrics", method="POST").respond_with_handler(self._answer)
        self.url = server.url_for("")

    def _answer(self, request: Request) -> Response:
        body = request.get_data()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append((request.path, dict(request.headers), body))
        return self.answers.pop(0) if self.answers else Response(b"", 200)

    def logs(self) -> list[LogRecord]:
        parsed = [ExportLogsServiceRequest.FromString(body) for path, _, body in self.requests if path == "/v1/logs"]
        return [log for r in parsed for rl in r.resource_logs for sl in rl.scope_logs for log in sl.log_records]


@pytest.fixture
def receiver(httpserver: HTTPServer) -> Receiver:
    return Receiver(httpserver)


@pytest.fixture
def sender(receiver: Receiver) -> Iterator[Sender]:
    made = Sender(receiver.url, "secret", 30.0, node="n1", flush_interval=0.02)
    yield made
    made.close(1.0)


def values(log: LogRecord) -> dict[str, object]:
    """Attributes as Python values, read by hand."""
    out: dict[str, object] = {}
    for kv in log.attributes:
        which = kv.value.WhichOneof("value")
        value = getattr(kv.value, str(which))
        out[kv.key] = {i.key: i.value.string_value for i in value.values} if which == "kvlist_value" else value
    return out


@pytest.mark.parametrize(("name", "record"), [("surefoot.step", STEP), ("surefoot.live", LIVE), ("surefoot.event", EVENT)])
def test_a_record_arrives_as_a_named_log_record_that_converts_back_to_itself(
    receiver: Receiver, sender: Sender, name: str, record: Record
) -> None:
    sender.send_records([(name, record)])
    wait_for(receiver.logs)
    (log,) = receiver.logs()
    assert log.event_name == name
    assert log.time_unix_nano == 1_796_040_000_123_456_000
    assert type(record).from_attributes(values(log)) == record


def test_a_transition_says_which_table_it_is_of(receiver: Receiver, sender: Sender) -> None:
    change = AttemptTransition(old_state="", new_state="issued", reason="first", actor="a", at=AT, run="r", attempt="r-1", launch=1)
    sender.send_records([("surefoot.transition", change)])
    wait_for(receiver.logs)
    given = values(receiver.logs()[0])
    assert given.pop("table") == "attempts"
    assert AttemptTransition.from_attributes(given) == change


def test_a_request_carries_token_content_type_host_and_service(receiver: Receiver, sender: Sender) -> None:
    sender.send_logs([wire.LogLine(AT, "hello", {"run": "r", "rank": 3})])
    wait_for(receiver.requests.copy)
    path, headers, body = receiver.requests[0]
    assert (path, headers["Authorization"], headers["Content-Type"]) == ("/v1/logs", "Bearer secret", "application/x-protobuf")
    (resource_logs,) = ExportLogsServiceRequest.FromString(body).resource_logs
    assert {kv.key: kv.value.string_value for kv in resource_logs.resource.attributes} == {
        "host.name": "n1",
        "service.name": "surefoot.agent",
    }
    (log,) = receiver.logs()
    assert (log.event_name, log.body.string_value, values(log)) == ("", "hello", {"run": "r", "rank": 3})


def test_a_retried_batch_keeps_its_id_and_another_batch_has_another(receiver: Receiver, sender: Sender) -> None:
    receiver.answers = [Response(b"", 503, {"Retry-After": "0"}), Response(b"", 502, {"Retry-After": "0"})]
    sender.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: sender.stats().sent_batches == 1)
    sender.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: sender.stats().sent_batches == 2)
    ids = [headers["X-Surefoot-Batch"] for _, headers, _ in receiver.requests]
    assert len(ids) == 4 and len(set(ids[:3])) == 1 and ids[3] != ids[0]
    assert len({body for _, _, body in receiver.requests[:3]}) == 1
    assert sender.stats().retries == 2


def test_retry_after_is_honoured(receiver: Receiver, sender: Sender) -> None:
    receiver.answers = [Response(b"", 429, {"Retry-After": "1"})]
    began = time.monotonic()
    sender.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: sender.stats().sent_batches == 1)
    assert time.monotonic() - began >= 1.0


def test_a_permanent_refusal_is_counted_logged_once_and_never_retried(
    receiver: Receiver, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [Response(Status(message="bad token").SerializeToString(), 401) for _ in range(3)]
    for n in (1, 2, 3):
        sender.send_records([("surefoot.event", EVENT)])
        wait_for(lambda n=n: sender.stats().refused == n)
    assert len(receiver.requests) == 3
    assert [r.getMessage() for r in caplog.records if "bad token" in r.getMessage()].__len__() == 1


# C37
def test_what_ingest_rejects_of_a_batch_is_counted_and_not_sent_again(receiver: Receiver, sender: Sender) -> None:
    partial = ExportLogsServiceResponse()
    partial.partial_success.rejected_log_records = 2
    partial.partial_success.error_message = "steps: rank must be int"
    receiver.answers = [Response(partial.SerializeToString(), 200)]
    sender.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: sender.stats().rejected == 2)
    time.sleep(0.1)
    assert len(receiver.requests) == 1


def test_an_answer_that_is_not_protobuf_does_not_stop_the_sender(receiver: Receiver, sender: Sender) -> None:
    receiver.answers = [Response(b"<html>\xff\xfe", 200), Response(b"<html>\xff", 400)]
    for n in (1, 2, 3):
        sender.send_records([("surefoot.event", EVENT)])
        wait_for(lambda n=n: sender.stats().sent_batches + sender.stats().refused == n)
    assert (sender.stats().sent_batches, sender.stats().refused) == (2, 1)


# C30
def test_what_is_over_four_mebibytes_is_split_and_arrives_once(receiver: Receiver, sender: Sender) -> None:
    lines = [wire.LogLine(AT, f"{n:06}" + "x" * 10_000) for n in range(1000)]
    sender.send_logs(lines)
    wait_for(lambda: sender.stats().sent.get("log") == 1000)
    assert all(len(body) <= MAX_REQUEST for _, _, body in receiver.requests)
    assert len(receiver.requests) >= 3
    assert [log.body.string_value[:6] for log in receiver.logs()] == [f"{n:06}" for n in range(1000)]


def test_metric_scopes_arrive_unchanged_on_the_metrics_path(receiver: Receiver, sender: Sender) -> None:
    scope = ScopeMetrics()
    scope.metrics.add(name="host.load1").gauge.data_points.add(as_double=0.5, time_unix_nano=5)
    sender.send_metrics([scope.SerializeToString()])
    wait_for(receiver.requests.copy)
    path, _, body = receiver.requests[0]
    (resource_metrics,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    assert path == "/v1/metrics" and list(resource_metrics.scope_metrics) == [scope]


def test_with_ingest_away_memory_and_threads_stay_bounded_and_events_outlive_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    before = threading.active_count()
    sender = Sender(f"http://127.0.0.1:{free_ports(1)[0]}", "t", 1.0, node="n1", flush_interval=0.02, buffer_bytes=100_000)
    sender.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: not sender.stats().reachable)
    sender.send_records([("surefoot.event", EVENT)] * 5)
    for _ in range(20):
        sender.send_records([("surefoot.live", LIVE)] * 500)
        assert sender.stats().queue_bytes <= 100_000
    assert threading.active_count() <= before + 2
    dropped = sender.stats().dropped
    assert dropped["surefoot.live"] > 8000 and "surefoot.event" not in dropped
    began = time.monotonic()
    sender.close(1.0)
    assert time.monotonic() - began < 30
    assert sum(sender.stats().dropped.values()) == 10_006
    assert len([r for r in caplog.records if "cannot reach" in r.getMessage()]) == 1


def test_what_waited_while_ingest_was_away_is_sent_when_it_is_back(receiver: Receiver, sender: Sender) -> None:
    receiver.answers = [Response(b"", 503)] * 3
    sender.send_records([("surefoot.event", EVENT)])
    sender.send_logs([wire.LogLine(AT, "waited")])
    wait_for(lambda: sender.stats().sent == {"surefoot.event": 1, "log": 1})
    assert sender.stats().reachable and not sender.stats().dropped


# C29
def test_close_ends_in_time_before_a_server_that_never_answers_and_leaves_what_waits_for_its_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(30)
        sender = Sender(f"http://127.0.0.1:{silent.getsockname()[1]}", "t", 600.0, node="n1", leftovers=tmp_path)
        sender.send_records([("surefoot.event", EVENT)])
        taken, _ = silent.accept()
        sender.send_records([("surefoot.event", EVENT)] * 2)
        began = time.monotonic()
        sender.close(0.5)
        assert time.monotonic() - began < 30
        taken.close()
        assert (sender.stats().left, sender.stats().dropped, len(list(tmp_path.iterdir()))) == (3, {}, 2)


def test_close_sends_what_waits(receiver: Receiver) -> None:
    sender = Sender(receiver.url, "secret", 30.0, node="n1", flush_interval=600.0)
    sender.send_records([("surefoot.live", LIVE)] * 10)
    sender.close(30.0)
    sender.close(30.0)
    assert len(receiver.logs()) == 10


def test_what_cannot_be_encoded_is_counted_and_harms_nothing_else(receiver: Receiver, sender: Sender) -> None:
    too_big = Step(run="r", attempt="r-1", node="n", rank=0, step=2**63, started_at=AT, ended_at=AT)
    odd = Event(id="e2", at=AT, kind="phase", layer="l", severity="info", message="bad \udcff text \x00 end")
    sender.send_records([("surefoot.step", too_big), ("surefoot.event", odd)])
    wait_for(receiver.logs)
    assert sender.stats().invalid == 1
    assert values(receiver.logs()[0])["message"] == "bad \\udcff text \x00 end"


def test_the_queue_drops_the_oldest_ordinary_part_whatever_its_signal() -> None:
    queue = Outgoing(3 * (10 + OVERHEAD))
    queue.put(Signal.METRICS, "metrics", b"0" * 10)
    queue.put(Signal.LOGS, "log", b"1" * 10)
    queue.put(Signal.LOGS, "surefoot.event", b"2" * 10, lasting=True)
    queue.put(Signal.LOGS, "log", b"3" * 10)
    assert queue.dropped == {"metrics": 1}
    queue.put(Signal.METRICS, "metrics", b"4" * 10)
    assert queue.dropped == {"metrics": 1, "log": 1}
    assert [item.data[:1] for item in queue.take(1000)] == [b"2", b"3"]
    assert queue.settled == 2, "1 and 2 were dropped, 3 and 4 are being sent"
    queue.settle()
    assert [item.data[:1] for item in queue.take(1000)] == [b"4"]
    assert queue.settled == 4
    queue.settle()
    assert queue.settled == 5
    assert queue.bytes == 0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("2", 2.0), ("1e9", 30.0), ("-5", 0.0), ("nan", None), ("soon", None), (None, None), ("Mon, 30 Nov 2026 12:00:07 GMT", 7.0)],
)
def test_retry_after_is_read_in_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, datetime(2026, 11, 30, 12, tzinfo=UTC)) == seconds


def test_what_lasts_and_could_not_be_sent_is_sent_by_the_next_sender_under_its_id(receiver: Receiver, tmp_path: Path) -> None:
    folder = tmp_path / "undelivered"
    receiver.answers = [Response(b"", 503)] * 1000
    first = Sender(receiver.url, "secret", 30.0, node="n1", flush_interval=0.02, leftovers=folder)
    first.send_records([("surefoot.event", EVENT)])
    wait_for(lambda: receiver.requests)
    first.send_records([("surefoot.event", replace(EVENT, id="e2")), ("surefoot.step", STEP)])
    first.send_metrics([ScopeMetrics().SerializeToString()])
    first.close(0.5)
    first._thread.join(60)
    tried = receiver.requests[0][1]["X-Surefoot-Batch"]
    assert (first.stats().left, first.stats().dropped) == (3, {"metrics": 1})
    receiver.answers, receiver.requests = [], []
    second = Sender(receiver.url, "secret", 30.0, node="n1", flush_interval=0.02, leftovers=folder)
    second.send_records([("surefoot.event", replace(EVENT, id="e3"))])
    wait_for(lambda: len(receiver.logs()) == 4)
    second.close(30.0)
    ids = [values(log).get("id") for log in receiver.logs()]
    assert (ids[0], sorted(map(str, ids[1:]))) == ("e3", ["None", "e1", "e2"])
    assert tried in {headers["X-Surefoot-Batch"] for _, headers, _ in receiver.requests}
    assert not list(folder.iterdir())
