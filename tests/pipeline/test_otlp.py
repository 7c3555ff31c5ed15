"""OTLP bodies become the right rows; what cannot be kept is counted with its reason; nothing else is ever raised."""

import json
import random
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, AGGREGATION_TEMPORALITY_DELTA, Metric
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from exporters.sending.wire import LogLine, encode_line, encode_record, logs_request, resource
from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import DISK, HOST, MOUNT
from pipeline.errors import InputError
from pipeline.otlp import decode as otlp
from pipeline.otlp.decode import ContentType, Signal
from pipeline.otlp.decoded import Decoded
from pipeline.otlp.metrics import series_id
from pipeline.records import AttemptTransition, Event, Live, Record, RunTransition, Step

NOW = datetime(2026, 10, 1, 12, 0, 0, 250_000, tzinfo=UTC)
NANOS = 1_790_856_000_250_000_000  # NOW, by `date -d 2026-10-01T12:00:00Z +%s`
PB, JSON = ContentType.PROTOBUF, ContentType.JSON

STEP = Step(
    run="r",
    attempt="r-1",
    node="n1",
    rank=3,
    step=7,
    started_at=NOW - timedelta(seconds=1),
    ended_at=NOW,
    forward=0.25,
    loss=-1.5,
    tokens=4096,
)
LIVE = Live(
    run="r", attempt="r-1", node="n1", rank=3, at=NOW, pid=4711, step=8, completed=7, phase="comm_wait", since=NOW, collective="all_reduce"
)
EVENT = Event(id="e1", at=NOW, kind="rank_exited", layer="framework", severity="info", rank=3, code="-9", attrs={"signal": "9"})
RUN = RunTransition(old_state="", new_state="started", reason="", actor="launcher:n1", at=NOW, run="r", node="n1", command="torchrun")
ATTEMPT = AttemptTransition(
    old_state="running", new_state="ended", reason="", actor="l", at=NOW, run="r", attempt="r-1", launch=1, exit_code=-9
)


def name_of(record: Record) -> str:
    return {Step: "surefoot.step", Live: "surefoot.live", Event: "surefoot.event"}.get(type(record), "surefoot.transition")


def logs_of(*records: Record) -> bytes:
    return logs_request(resource({"host.name": "n1", "service.name": "agent"}), [encode_record(name_of(r), r) for r in records])


def record_of(event_name: str, attributes: dict[str, Any]) -> bytes:
    request = ExportLogsServiceRequest()
    log = request.resource_logs.add().scope_logs.add().log_records.add(event_name=event_name, time_unix_nano=NANOS)
    for key, value in attributes.items():
        kind = {str: "string_value", int: "int_value", float: "double_value", bool: "bool_value"}[type(value)]
        log.attributes.append(KeyValue(key=key, value=AnyValue(**{kind: value})))
    return request.SerializeToString()


class Metrics:
    """Builds a metrics request of one resource."""

    def __init__(self, **resource: str) -> None:
        self.request = ExportMetricsServiceRequest()
        self._resource = self.request.resource_metrics.add()
        for key, value in resource.items():
            self._resource.resource.attributes.append(pair(key.replace("_", "."), value))
        self._scope = self._resource.scope_metrics.add()

    def metric(self, name: str, unit: str = "") -> Metric:
        return self._scope.metrics.add(name=name, unit=unit)

    def gauge(self, name: str, value: float | None, at: int = NANOS, unit: str = "", flags: int = 0, **attributes: str) -> "Metrics":
        point = self.metric(name, unit).gauge.data_points.add(time_unix_nano=at, flags=flags)
        if isinstance(value, int):
            point.as_int = value
        elif value is not None:
            point.as_double = value
        point.attributes.extend(pair(k, v) for k, v in attributes.items())
        return self

    def decode(self, content_type: ContentType = PB, now: datetime = NOW) -> Decoded:
        body = self.request.SerializeToString() if content_type is PB else json_format.MessageToJson(self.request).encode()
        return otlp.decode(Signal.METRICS, content_type, body, now)


def pair(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


# --- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [STEP, LIVE, EVENT, RUN, ATTEMPT], ids=lambda r: r.table)
def test_what_a_sender_encodes_comes_out_as_the_same_record(record: Record) -> None:
    decoded = otlp.decode(Signal.LOGS, PB, logs_of(record), NOW)
    assert decoded.records == {type(record): [record]}
    assert (decoded.kept, decoded.rejected, decoded.message()) == (1, 0, "")


@pytest.mark.parametrize("record", [STEP, EVENT, ATTEMPT], ids=lambda r: r.table)
def test_json_says_the_same_as_protobuf(record: Record) -> None:
    text = json_format.MessageToJson(ExportLogsServiceRequest.FromString(logs_of(record)))
    assert otlp.decode(Signal.LOGS, JSON, text.encode(), NOW).records == {type(record): [record]}


def test_one_bad_record_does_not_cost_its_neighbours() -> None:
    bad = logs_of(STEP) + record_of("surefoot.step", {"run": "r"}) + logs_of(EVENT)  # concatenated messages merge: protobuf's rule
    decoded = otlp.decode(Signal.LOGS, PB, bad, NOW)
    assert decoded.records == {Step: [STEP], Event: [EVENT]}
    assert decoded.rejected == 1
    assert "steps: missing" in decoded.message()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("rank", -1, "rank=-1 is beyond its valid range"),
        ("rank", 2**32, "rank=4294967296 is beyond its valid range"),
        ("step", -1, "step=-1 is beyond its valid range"),
        ("forward", -0.5, "forward=-0.5 is beyond its valid range"),
        ("forward", 2.5e9, "forward=2500000000.0 is beyond its valid range"),  # nanoseconds
        ("run", 5, "run must be str, not int"),
        ("loss", "low", "loss must be float, not str"),
        ("surprise", 1, "unknown attribute 'surprise'"),
        ("ended_at", 1_790_856_000, "not a time in microseconds"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused_by_name(name: str, value: Any, reason: str) -> None:
    decoded = otlp.decode(Signal.LOGS, PB, record_of("surefoot.step", {**STEP.attributes(), name: value}), NOW)
    assert (decoded.records, decoded.rejected) == ({}, 1)
    assert reason in decoded.message()


@pytest.mark.parametrize(("name", "value"), [("kind", "party"), ("layer", "ocean"), ("severity", "awful")])
def test_words_that_the_catalogue_does_not_know_are_refused(name: str, value: str) -> None:
    given = {k: v for k, v in EVENT.attributes().items() if k != "attrs"} | {name: value}
    decoded = otlp.decode(Signal.LOGS, PB, record_of("surefoot.event", given), NOW)
    assert f"{name}='{value}' is not in the catalogue" in decoded.message()


@pytest.mark.parametrize("record", [RUN, ATTEMPT])
def test_a_state_that_runs_and_attempts_do_not_have_is_refused(record: Record) -> None:
    given = {**record.attributes(), "table": record.table, "new_state": "paused"}
    decoded = otlp.decode(Signal.LOGS, PB, record_of("surefoot.transition", given), NOW)
    assert (decoded.records, decoded.rejected) == ({}, 1)
    assert "new_state='paused' is none of " in decoded.message()


def test_only_transitions_of_runs_and_attempts_may_be_written_from_outside() -> None:
    for table in ("actions", "incidents", ""):
        decoded = otlp.decode(Signal.LOGS, PB, record_of("surefoot.transition", {**RUN.attributes(), "table": table}), NOW)
        assert (decoded.records, decoded.rejected) == ({}, 1), table


def test_figures_that_are_not_finite_become_absent() -> None:
    given = {**STEP.attributes(), "loss": float("nan"), "grad_norm": float("inf")}
    (step,) = otlp.decode(Signal.LOGS, PB, record_of("surefoot.step", given), NOW).records[Step]
    assert isinstance(step, Step)
    assert (step.loss, step.grad_norm, step.forward) == (None, None, 0.25)


def test_node_names_are_folded_to_lower_case() -> None:
    (step,) = otlp.decode(Signal.LOGS, PB, record_of("surefoot.step", {**STEP.attributes(), "node": "GPU-Node-7"}), NOW).records[Step]
    assert isinstance(step, Step)
    assert step.node == "gpu-node-7"


# C36
def test_a_time_12_hours_ahead_is_refused_and_the_next_right_one_is_kept() -> None:
    ahead = Event(id="e2", at=NOW + timedelta(hours=12), kind="phase", layer="framework", severity="info")
    edge = Event(id="e3", at=NOW + timedelta(seconds=60), kind="phase", layer="framework", severity="info")
    decoded = otlp.decode(Signal.LOGS, PB, logs_of(ahead, EVENT, edge), NOW)
    assert decoded.records == {Event: [EVENT, edge]}
    assert (decoded.rejected, decoded.skew) == (1, 43_200.0)


def test_log_lines_keep_body_time_and_who_wrote_them() -> None:
    line = LogLine(NOW, 'loss "0.3" \u2028 \U0001f600', {"run": "r", "rank": 3, "stream": "stderr"})
    (row,) = otlp.decode(
        Signal.LOGS, PB, logs_request(resource({"host.name": "n1", "service.name": "surefoot.run"}), [encode_line(line)]), NOW
    ).rows["logs"]
    assert row["Body"] == line.body
    assert row["Timestamp"] == NOW
    assert row["ServiceName"] == "surefoot.run"
    assert row["LogAttributes"] == {"run": "r", "rank": "3", "stream": "stderr"}
    assert row["ResourceAttributes"] == {"host.name": "n1", "service.name": "surefoot.run"}


def test_a_log_line_without_a_time_takes_the_observed_one_and_else_the_time_of_arrival() -> None:
    request = ExportLogsServiceRequest()
    logs = request.resource_logs.add().scope_logs.add().log_records
    logs.add(observed_time_unix_nano=NANOS - 5_000_000_000)
    logs.add()
    rows = otlp.decode(Signal.LOGS, PB, request.SerializeToString(), NOW).rows["logs"]
    assert [row["Timestamp"] for row in rows] == [NOW - timedelta(seconds=5), NOW]


def test_json_trace_ids_are_hex_not_base64() -> None:
    ids = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}  # the example of the OTLP specification
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": str(NANOS), "newField": 1, **ids}]}]}], "unknown": {}}
    (row,) = otlp.decode(Signal.LOGS, JSON, json.dumps(body).encode(), NOW).rows["logs"]
    assert (row["TraceId"], row["SpanId"]) == (ids["traceId"], ids["spanId"])


# --- metrics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", list(ContentType))
def test_the_readings_of_a_device_become_one_row(content_type: ContentType) -> None:
    m = Metrics(host_name="N1")
    for name, value in (("mount.size", 100), ("mount.free", 25.0), ("mount.read_only", 0)):
        m.gauge(name, value, mount_point="/data", source="/dev/sda1", fstype="ext4")
    m.gauge("mount.free", 7, mount_point="/", source="/dev/sda2")
    decoded = m.decode(content_type)
    identity = {"node": "n1", "mount_point": "/data", "source": "/dev/sda1"}
    first, second = decoded.rows["mount_raw"]
    assert first == {"device_id": device_id(MOUNT, identity), "ts": NOW, "node": "n1", "size": 100, "free": 25, "read_only": 0}
    assert type(first["free"]) is int
    assert second["free"] == 7
    assert decoded.kept == 4
    device = decoded.rows["devices"][0]
    assert (device["name"], device["node"], device["family"]) == ("/data /dev/sda1", "n1", "mount")
    assert device["attrs"] == {"mount_point": "/data", "source": "/dev/sda1", "fstype": "ext4"}


def test_readings_of_two_times_become_two_rows() -> None:
    rows = Metrics(host_name="n1").gauge("host.load1", 1.5).gauge("host.load1", 2.5, at=NANOS - 10**9).decode().rows["host_raw"]
    assert [(row["ts"], row["load1"]) for row in rows] == [(NOW, 1.5), (NOW - timedelta(seconds=1), 2.5)]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("host.load1", -0.1, "host.load1: -0.1 is beyond its valid range"),
        ("host.cpu.count", 65_537, "65537 is beyond its valid range"),
        ("host.shm.free", 1.5, "1.5 is not a whole number"),
        ("host.shm.free", 2.0**64, "not a whole number that fits UInt64"),
        ("host.load1", float("inf"), "inf is beyond its valid range"),
    ],
)
def test_a_reading_beyond_its_range_is_counted_and_its_neighbours_are_kept(name: str, value: float, reason: str) -> None:
    decoded = Metrics(host_name="n1").gauge(name, value).gauge("host.boot", 5.0).decode()
    assert decoded.rows["host_raw"] == [{"device_id": device_id(HOST, {"node": "n1"}), "ts": NOW, "node": "n1", "boot": 5.0}]
    assert (decoded.kept, decoded.rejected) == (1, 1)
    assert reason in decoded.message()


def test_no_recorded_value_and_nan_are_absent_not_zero() -> None:
    m = Metrics(host_name="n1").gauge("host.load1", 0.0, flags=1).gauge("host.boot", float("nan")).gauge("host.shm.free", None)
    (row,) = m.decode().rows["host_raw"]
    assert (row["load1"], row["boot"], row["shm_free"]) == (None, None, None)
    (sample,) = Metrics().gauge("custom", 0.0, flags=1).decode().rows["samples"]
    assert sample["value"] is None


def test_a_reading_without_what_identifies_its_device_is_refused() -> None:
    assert "no node is given, which identifies a host" in Metrics().gauge("host.load1", 1.0).decode().message()
    assert (
        "no source is given, which identifies a mount" in Metrics(host_name="n1").gauge("mount.free", 1, mount_point="/").decode().message()
    )


def test_another_unit_or_deltas_are_refused_for_a_metric_of_the_catalogue() -> None:
    assert "host.boot: is kept in s, not in ms" in Metrics(host_name="n1").gauge("host.boot", 1.0, unit="ms").decode().message()
    m = Metrics(host_name="n1")
    data = m.metric("disk.reads").sum
    data.aggregation_temporality = AGGREGATION_TEMPORALITY_DELTA
    data.data_points.add(time_unix_nano=NANOS, as_int=3).attributes.append(pair("disk", "sda"))
    assert "cumulative" in m.decode().message()
    data.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    (row,) = m.decode().rows["disk_raw"]
    assert (row["reads"], row["device_id"]) == (3, device_id(DISK, {"node": "n1", "disk": "sda"}))


@pytest.mark.parametrize("at", [0, NANOS // 1000, NANOS // 10**6, NANOS // 10**9, 2**64 - 1])
def test_times_in_another_unit_are_refused(at: int) -> None:
    decoded = Metrics(host_name="n1").gauge("host.load1", 1.0, at=at).decode()
    assert (decoded.rows, decoded.rejected) == ({}, 1)


# C36
def test_a_metric_of_the_future_is_refused_and_says_how_far_ahead() -> None:
    decoded = Metrics(host_name="n1").gauge("host.load1", 1.0, at=NANOS + 61 * 10**9).gauge("other", 1.0, at=NANOS + 120 * 10**9).decode()
    assert (decoded.rows, decoded.rejected, decoded.skew) == ({}, 2, 120.0)


def test_unknown_metrics_become_samples_with_their_labels_once() -> None:
    decoded = (
        Metrics(service_name="x").gauge("custom.queue", 3, b="2", a="1").gauge("custom.queue", 4.5, at=NANOS - 10**9, a="1", b="2").decode()
    )
    series = series_id("custom.queue", {"a": "1", "b": "2", "service.name": "x"})
    assert [(s["series"], s["value"], type(s["value"])) for s in decoded.rows["samples"]] == [(series, 3.0, float), (series, 4.5, float)]
    (row,) = decoded.rows["series"]
    assert (row["labels"], row["kind"]) == ({"a": "1", "b": "2", "service.name": "x"}, "gauge")


def test_labels_with_separators_inside_do_not_collide() -> None:
    assert series_id("m", {"a": "1", "b": "2"}) == series_id("m", {"b": "2", "a": "1"})
    assert series_id("m", {"a": "1=2"}) != series_id("m", {"a=1": "2"})
    assert series_id("m", {"a": "1\x1fb=2"}) != series_id("m", {"a": "1", "b": "2"})


def test_distributions_keep_count_and_sum_and_say_so() -> None:
    m = Metrics()
    m.metric("latency", "s").histogram.data_points.add(time_unix_nano=NANOS, count=4, sum=2.5, bucket_counts=[1, 3], explicit_bounds=[1.0])
    m.metric("wide", "s").exponential_histogram.data_points.add(time_unix_nano=NANOS, count=2)
    m.metric("old", "s").summary.data_points.add(time_unix_nano=NANOS, count=5, sum=1.0)
    decoded = m.decode()
    found = {s["metric"]: s["value"] for s in decoded.rows["samples"]}
    assert found == {"latency.count": 4.0, "latency.sum": 2.5, "wide.count": 2.0, "old.count": 5.0, "old.sum": 1.0}
    assert {s["metric"]: s["unit"] for s in decoded.rows["series"]}["latency.count"] == "1"
    assert (decoded.kept, decoded.rejected) == (3, 0)
    assert "latency: of a distribution only count and sum are kept" in decoded.message()


def test_the_official_sdks_own_message_is_understood() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = provider.get_meter("t")
    meter.create_counter("jobs", unit="1").add(7, {"queue": "a"})
    meter.create_up_down_counter("open").add(-2)
    data = reader.get_metrics_data()
    assert data is not None
    decoded = otlp.decode(Signal.METRICS, PB, encode_metrics(data).SerializeToString(), datetime.now(UTC))
    provider.shutdown()
    assert {(s["metric"], s["value"]) for s in decoded.rows["samples"]} == {("jobs", 7.0), ("open", -2.0)}
    assert {(s["metric"], s["kind"]) for s in decoded.rows["series"]} == {("jobs", "counter"), ("open", "updown")}


# --- answers ---------------------------------------------------------------------------------


def test_an_empty_request_is_kept_without_a_word() -> None:
    for signal in Signal:
        for content_type, body in ((PB, b""), (JSON, b"{}"), (JSON, b"")):
            decoded = otlp.decode(signal, content_type, body, NOW)
            assert otlp.answer(signal, content_type, decoded) in (b"", b"{}")


@pytest.mark.parametrize(
    "body",
    [
        "[]", "null", "0", '""', '"resourceMetrics"', '["resourceMetrics"]', "true",
        '{"resourceMetrics": {}}', '{"resourceMetrics": "x"}', '{"resourceMetrics": [[]]}', '{"resourceMetrics": ["x"]}',
        '{"resource_metrics": [""]}', '{"resourceMetrics": [{"resource": []}]}', '{"resourceMetrics": [{"resource": "host"}]}',
        '{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "a", "gauge": []}]}]}]}',
        '{"resourceMetrics": [{"resource": {"attributes": [{"key": "a", "value": "text"}]}}]}',
    ],
)  # fmt: skip
def test_json_that_has_something_else_where_an_object_belongs_is_refused(body: str) -> None:
    with pytest.raises(InputError, match="the body is not a ExportMetricsServiceRequest in JSON"):
        otlp.decode(Signal.METRICS, JSON, body.encode(), NOW)


def test_json_may_leave_out_an_object_and_say_null_for_it() -> None:
    for body in ("{}", '{"resourceMetrics": []}', '{"resourceMetrics": null}', '{"resourceMetrics": [{"resource": null}]}'):
        assert otlp.decode(Signal.METRICS, JSON, body.encode(), NOW).count == 0, body


def test_partial_success_stands_in_the_answer_in_the_requests_encoding() -> None:
    decoded = Metrics(host_name="n1").gauge("host.load1", -1.0).gauge("host.load1", 1.0).decode()
    response = ExportMetricsServiceResponse.FromString(otlp.answer(Signal.METRICS, PB, decoded))
    assert response.partial_success.rejected_data_points == 1
    text = json.loads(otlp.answer(Signal.METRICS, JSON, decoded))
    assert text == {"partialSuccess": {"rejectedDataPoints": "1", "errorMessage": response.partial_success.error_message}}
    logs = otlp.decode(Signal.LOGS, PB, record_of("surefoot.step", {}), NOW)
    assert ExportLogsServiceResponse.FromString(otlp.answer(Signal.LOGS, PB, logs)).partial_success.rejected_log_records == 1


def test_traces_are_counted_as_rejected() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(name="a")
    spans.add(name="b")
    decoded = otlp.decode(Signal.TRACES, PB, request.SerializeToString(), NOW)
    assert (decoded.rejected, decoded.message()) == (2, "2 x traces are not kept")


def test_refusals_are_a_google_rpc_status() -> None:
    status = Status.FromString(otlp.refusal(PB, 3, "why"))
    assert (status.code, status.message) == (3, "why")
    assert json.loads(otlp.refusal(JSON, 3, "why")) == {"code": 3, "message": "why"}


def test_the_message_to_the_sender_stays_short_whatever_was_sent() -> None:
    request = ExportLogsServiceRequest()
    logs = request.resource_logs.add().scope_logs.add().log_records
    for i in range(200):
        logs.add(event_name="surefoot.step").attributes.append(pair("x" * 10_000 + str(i), ""))
    decoded = otlp.decode(Signal.LOGS, PB, request.SerializeToString(), NOW)
    assert decoded.rejected == 200
    assert len(decoded.message()) < 2_000


# --- anything at all -------------------------------------------------------------------------


def _corpus() -> list[tuple[Signal, bytes]]:
    m = Metrics(host_name="n1").gauge("host.load1", 1.0).gauge("custom", 2, a="b").gauge("mount.free", 3, mount_point="/", source="s")
    m.metric("h").histogram.data_points.add(time_unix_nano=NANOS, count=4, sum=2.5).exemplars.add(trace_id=b"1" * 16, as_int=1)
    lines = logs_request(resource({"host.name": "n"}), [encode_line(LogLine(NOW, "text", {"rank": 1}))])
    return [(Signal.METRICS, m.request.SerializeToString()), (Signal.LOGS, logs_of(STEP, LIVE, EVENT, RUN, ATTEMPT) + lines)]


def _mutated(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        match rng.choice((0, 0, 0, 0, 1, 2, 3, 4)):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                del out[at : at + rng.randint(1, 16)]
            case 2:
                out[at:at] = rng.randbytes(rng.randint(1, 16))
            case 3:
                out[at : at + 8] = struct.pack("<d", rng.choice([float("nan"), float("inf"), -0.0, 1e300]))
            case _:
                out[at : at + 8] = struct.pack("<Q", rng.choice([0, 1, 2**63, 2**64 - 1]))
    return bytes(out)


def _must_be_rows_or_input_error(signal: Signal, content_type: ContentType, body: bytes) -> bool:
    try:
        decoded = otlp.decode(signal, content_type, body, NOW)
    except InputError:
        return False
    assert otlp.answer(signal, content_type, decoded) is not None
    return True


def test_twenty_thousand_mutated_protobuf_bodies_give_rows_or_a_reason() -> None:
    rng = random.Random(20261001)
    corpus = _corpus()
    read = sum(_must_be_rows_or_input_error(signal, PB, _mutated(rng, body)) for i in range(10_000) for signal, body in corpus)
    assert 1_000 < read < 19_000  # both ways are really taken


def test_four_thousand_mutated_json_bodies_give_rows_or_a_reason() -> None:
    rng = random.Random(20261002)
    corpus = [
        (signal, json_format.MessageToJson(cls.FromString(body), indent=None).encode())
        for (signal, body), cls in zip(_corpus(), (ExportMetricsServiceRequest, ExportLogsServiceRequest), strict=True)
    ]
    for _ in range(2_000):
        for signal, body in corpus:
            _must_be_rows_or_input_error(signal, JSON, _mutated(rng, body))


KEYS = "traceId resourceLogs scopeLogs logRecords attributes key value intValue resourceMetrics x".split()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None)
@given(JSON_VALUES, st.sampled_from(list(Signal)))
def test_any_json_gives_rows_or_a_reason(value: Any, signal: Signal) -> None:
    _must_be_rows_or_input_error(signal, JSON, json.dumps(value).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"resourceLogs": 5}',
        b'"\\ud800"',
        b'{"\\ud800": 1}',
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"zz"}]}]}]}',
        b"1e999",
        b"9" * 5000,
    ],
)
def test_hostile_json_is_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(InputError, match="not a ExportLogsServiceRequest in JSON"):
        otlp.decode(Signal.LOGS, JSON, body, NOW)


def test_a_truncated_protobuf_is_refused_with_a_reason() -> None:
    with pytest.raises(InputError, match="not a whole ExportLogsServiceRequest"):
        otlp.decode(Signal.LOGS, PB, logs_of(STEP)[:-3], NOW)
