"""What others' exporters sent of devices that were gone, and how they ended and split: the whole agent, with a receiver or without one."""

import gzip
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exporters.agent import Agent
from exporters.collector import Reading, Site
from exporters.encode import accept
from exporters.foreign.series import SeriesBook
from exporters.registry import Entry
from exporters.sending.metrics import MetricMessages
from exporters.sending.sender import MAX_REQUEST, Sender
from exporters.sources.prometheus_text import parse
from pipeline.catalog.metrics import DISK, GPU, GPU_PROCESS
from pipeline.settings import AgentSettings, Settings
from surefoot.drill.stack import free_ports

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
GIB = 1 << 30


class Told:
    """A collector that gives what it is told to, every second."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []

    def collect(self, now: datetime) -> list[Reading]:
        return self.readings

    def absent(self) -> str:
        return "nothing is there"


class Receiver:
    """What a server was pushed: requests, and points as attributes and value, by metric."""

    def __init__(self, server: HTTPServer) -> None:
        self.sizes: list[int] = []
        self.points: dict[str, list[tuple[dict[str, str], int]]] = {}
        server.expect_request("/v1/logs").respond_with_data(b"")
        server.expect_request("/v1/metrics").respond_with_handler(self._take)
        self.url = server.url_for("")

    def _take(self, request: Request) -> Response:
        body = request.get_data()
        body = gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body
        self.sizes.append(len(body))
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.gauge.data_points or metric.sum.data_points:
                    labels = {one.key: one.value.string_value for one in point.attributes}
                    self.points.setdefault(metric.name, []).append((labels, point.as_int))
        return Response(b"")


class Turned:
    """An agent with that one collector, turned on a clock of the test's own."""

    def __init__(self, folder: Path, url: str, told: Told) -> None:
        settings = Settings(node="n", state_dir=folder, ring_dir=folder / "rings", agent=AgentSettings(interval=1.0))
        entry = Entry("told", (GPU, GPU_PROCESS, DISK), lambda site: told, every=1.0)
        self.sender = Sender(url, "t", 30.0, node="n", flush_interval=0.02)
        self.agent, self.clock = Agent(settings, Site("n", proc=folder), self.sender, [entry]), 1000.0

    def seconds(self, count: int) -> dict[str, float]:
        """The page after so many seconds: value by series."""
        for _ in range(4 * count):
            self.clock += 0.25
            self.agent.turn(AT + timedelta(seconds=self.clock), self.clock)
            end = time.monotonic() + 30
            while any(runner.busy for runner in self.agent._runners) or self.sender.settled < self.sender.queued:
                assert time.monotonic() < end
                self.sender.flush()
                time.sleep(0.001)
        page = text_string_to_metric_families(self.agent.board.page(self.clock))
        return {f"{s.name} {s.labels.get('uuid')} {s.labels.get('pid', '')}".strip(): s.value for f in page for s in f.samples}


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def receiver(httpserver: HTTPServer) -> Receiver:
    return Receiver(httpserver)


@pytest.fixture
def turned(tmp_path: Path, receiver: Receiver, told: Told) -> Iterator[Turned]:
    made = Turned(tmp_path, receiver.url, told)
    yield made
    made.agent.close()


def process(pid: int, memory: int) -> Reading:
    return Reading(GPU_PROCESS, {"node": "n", "uuid": "A", "pid": str(pid)}, {"gpu_process.memory": memory})


def gpu(uuid: str, power: int) -> Reading:
    return Reading(GPU, {"node": "n", "uuid": uuid}, {"gpu.up": 1, "gpu.processes": power})


def test_c27_what_a_dead_process_last_said_is_gone_with_the_next_pass(turned: Turned, told: Told, receiver: Receiver) -> None:
    told.readings = [process(11, 5 * GIB)]
    assert turned.seconds(4)["surefoot_gpu_process_memory_bytes A 11"] == 5 * GIB
    told.readings = [process(12, 3 * GIB)]
    shown = {name: value for name, value in turned.seconds(4).items() if name.startswith("surefoot_gpu_process")}
    assert shown == {"surefoot_gpu_process_memory_bytes A 12": 3 * GIB}
    pids = [labels["pid"] for labels, _ in receiver.points["gpu_process.memory"]]
    assert pids == sorted(pids) and set(pids) == {"11", "12"}, "of 11 nothing is sent once 12 was seen"


def test_c28_a_device_that_was_removed_is_neither_shown_nor_sent_again_and_the_last_one_leaves_nothing(
    turned: Turned, told: Told, receiver: Receiver
) -> None:
    told.readings = [gpu("A", 7), gpu("B", 1)]
    assert {"surefoot_gpu_processes A", "surefoot_gpu_processes B"} <= turned.seconds(3).keys()
    told.readings = [gpu("A", 7)]
    shown = turned.seconds(3)
    assert "surefoot_gpu_processes A" in shown and "surefoot_gpu_processes B" not in shown
    receiver.points.clear()
    turned.seconds(5)
    assert {labels["uuid"] for labels, _ in receiver.points["gpu.processes"]} == {"A"}
    told.readings = []
    turned.seconds(3)
    receiver.points.clear()
    assert not [name for name in turned.seconds(3) if name.startswith("surefoot_gpu")]
    assert "gpu.processes" not in receiver.points


def test_c30_sixty_thousand_points_of_one_pass_are_split_and_arrive_once_each(receiver: Receiver) -> None:
    named = {"model": "a disk with a name of the usual length"}
    some = (Reading(DISK, {"node": "n", "disk": f"disk{n}"}, {"disk.reads": n, "disk.writes": n}, named) for n in range(30_000))
    readings, _ = accept(some)
    sender = Sender(receiver.url, "t", 30.0, node="n", flush_interval=0.02)
    try:
        sender.send_metrics(MetricMessages().encode(readings, AT))
        end = time.monotonic() + 60
        while sum(map(len, receiver.points.values())) < 60_000 and time.monotonic() < end:
            sender.flush()
            time.sleep(0.02)
    finally:
        sender.close(1.0)
    for name in ("disk.reads", "disk.writes"):
        assert sorted((int(labels["disk"][4:]), value) for labels, value in receiver.points[name]) == [(n, n) for n in range(30_000)]
    assert max(receiver.sizes) <= MAX_REQUEST == 4 << 20 and len(receiver.sizes) > 1
    assert not sender.stats().dropped


def test_c35_three_runs_that_each_counted_one_are_three_counters_and_not_none() -> None:
    book = SeriesBook(9, {})
    began = []
    for run in range(3):
        created = 1_796_040_000 + 100 * run
        text = f"# TYPE jobs counter\njobs_total 1\njobs_created {created}\n# EOF\n"
        page = parse(text)
        (one,) = book.take(page.samples, page.types, created + 50.0)
        began.append((one.value, one.since))
    assert began == [(1, 1_796_040_000), (1, 1_796_040_100), (1, 1_796_040_200)], "each began after the one before was read"


SERVE = "from exporters.serve import serve; from pipeline.settings import load; serve(load())"


@pytest.mark.parametrize("silent", [True, False], ids=["a socket that never answers", "nobody there"])
def test_c29_an_agent_ends_within_its_time_whether_ingest_refuses_or_never_answers(tmp_path: Path, silent: bool) -> None:
    ingest, own = free_ports(2)
    given = {"STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "NODE": "n", "INGEST__PORT": str(ingest)}
    given |= {"INGEST__TOKEN": "t" * 32, "AGENT__PORT": str(own), "AGENT__INTERVAL": "0.5"}
    env = os.environ | {f"SUREFOOT_{key}": value for key, value in given.items()}
    with socket.socket() as listener:
        if silent:
            listener.bind(("127.0.0.1", ingest))
            listener.listen()
            listener.settimeout(60)
        with subprocess.Popen([sys.executable, "-c", SERVE], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as agent:
            try:
                if silent:
                    taken, _ = listener.accept()  # it has begun to send, and waits
                else:
                    time.sleep(3)
                began = time.monotonic()
            finally:
                agent.send_signal(signal.SIGTERM)
            assert agent.wait(60) == 0
            took = time.monotonic() - began
        if silent:
            taken.close()
    assert took < 15, "it takes four seconds: a machine that pauses must not fail this"
