"""The agent as a whole: against a real receiver, without one, and as a process."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exporters.agent import Agent
from exporters.collector import Site
from exporters.host.oom import OomCollector
from exporters.network.rdma import RdmaCollector
from exporters.once import as_page, look
from exporters.registry import COLLECTORS, Entry
from exporters.sending.sender import Sender
from exporters.sources.storage.probes import ThreadProbes, Usage, statvfs
from pipeline.catalog.metrics import (
    BY_NAME,
    CACHE,
    CGROUP,
    CHASSIS,
    CSI_DRIVER,
    QUOTA,
    RDMA_PORT,
    REGION_LINK,
    ROLLOUT_ENGINE,
    SCHED_JOB,
    SCHED_NODE,
    SCHED_VOLUME,
    SCRAPE,
    SWITCH_PORT,
)
from pipeline.settings import AgentSettings, Settings
from surefoot.drill.stack import free_ports
from surefoot.hook.ring import Identity, RingWriter

ROOT = Path(__file__).parents[2]
NS = 1_796_040_000_000_000_000
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEAVY = ("pandas", "pyarrow", "streamlit", "chdb", "clickhouse_connect", "torch", "numpy", "apscheduler")
SCHEDULED = (SCHED_NODE, SCHED_JOB, CSI_DRIVER, SCHED_VOLUME)
SCRAPED = (SCRAPE, ROLLOUT_ENGINE, CACHE, REGION_LINK, SWITCH_PORT)
ABSENT = (CGROUP, CHASSIS, QUOTA, *SCHEDULED, *SCRAPED)  # none is there, or to be asked


def settings_for(folder: Path, **agent: float) -> Settings:
    return Settings(node="node1", state_dir=folder / "state", ring_dir=folder / "rings", agent=AgentSettings(**{"interval": 5.0, **agent}))


class Received:
    """What a receiver got."""

    def __init__(self, server: HTTPServer) -> None:
        self.logs: list[tuple[str, dict[str, object]]] = []
        self.metrics: dict[str, list[float]] = {}
        server.expect_request("/v1/logs").respond_with_handler(self._logs)
        server.expect_request("/v1/metrics").respond_with_handler(self._metrics)

    def _logs(self, request: Request) -> Response:
        for rl in ExportLogsServiceRequest.FromString(body(request)).resource_logs:
            for log in rl.scope_logs[0].log_records:
                self.logs.append((log.event_name, {a.key: getattr(a.value, str(a.value.WhichOneof("value"))) for a in log.attributes}))
        return Response(b"")

    def _metrics(self, request: Request) -> Response:
        for rm in ExportMetricsServiceRequest.FromString(body(request)).resource_metrics:
            for metric in (m for scope in rm.scope_metrics for m in scope.metrics):
                points = metric.gauge.data_points or metric.sum.data_points
                self.metrics.setdefault(metric.name, []).extend(
                    p.as_double if p.WhichOneof("value") == "as_double" else p.as_int for p in points
                )
        return Response(b"")

    def events(self, kind: str) -> list[dict[str, object]]:
        return [a for name, a in self.logs if name == "surefoot.event" and a["kind"] == kind]


def body(request: Request) -> bytes:
    data = request.get_data()
    return gzip.decompress(data) if request.headers.get("Content-Encoding") == "gzip" else data


@pytest.fixture
def received(httpserver: HTTPServer) -> Received:
    return Received(httpserver)


class Turned:
    """An agent that the test turns, on a clock of its own. Each turn lasts until its collectors have answered and all is sent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.clock = time.monotonic()

    def turn(self, seconds: float = 0.25) -> None:
        self.clock += seconds
        self.agent.turn(AT + timedelta(seconds=self.clock), self.clock)
        end = time.monotonic() + 30
        while any(runner.busy for runner in self.agent._runners) or self.agent._sender.settled < self.agent._sender.queued:
            assert time.monotonic() < end, "a collector or the receiver does not answer"
            self.agent._sender.flush()
            time.sleep(0.005)


@pytest.fixture
def turned(tmp_path: Path, httpserver: HTTPServer, site: Site, received: Received) -> Iterator[Turned]:
    (tmp_path / "state").mkdir()
    sender = Sender(httpserver.url_for(""), "t", 30.0, node="node1", flush_interval=0.02)
    made = Turned(Agent(settings_for(tmp_path), site, sender))
    yield made
    made.agent.close()


def test_the_push_carries_every_reading_the_page_shows_and_surefoots_own_health(turned: Turned, received: Received) -> None:
    for _ in range(4):
        turned.turn()
    page = {s.name: s.value for f in text_string_to_metric_families(turned.agent.board.page(turned.clock)) for s in f.samples}
    assert page["surefoot_host_load1"] == 1.25 and received.metrics["host.load1"] == [1.25]
    assert sorted(received.metrics["disk.reads"]) == [1, 10, 100]
    assert page["surefoot_agent_collect_ok"] == 1 and received.metrics["agent.collect.ok"] == [1] * len(COLLECTORS)
    pushed = {name for name in received.metrics if not name.startswith("surefoot.")}
    absent = {m.name for f in ABSENT for m in f.metrics} | {name for name in BY_NAME if name.startswith("mount.write.")}
    assert pushed | {"host.clock_offset", "sender.buffer.age"} == BY_NAME.keys() - absent, "which is known once ingest has answered"
    assert received.metrics["surefoot.sender.batches"][0] >= 1 and received.metrics["surefoot.agent.threads"][0] >= 3


def test_the_start_is_told_with_the_boot_id(turned: Turned, received: Received) -> None:
    turned.turn()
    (event,) = received.events("agent_started")
    assert (event["code"], event["node"]) == ("6c1f0c1e-2f5e-4f4e-9d0b-0123456789ab", "node1")


def test_steps_arrive_once_also_over_a_restart_of_the_agent(tmp_path: Path, received: Received, site: Site, httpserver: HTTPServer) -> None:
    (tmp_path / "rings").mkdir()
    (tmp_path / "state").mkdir()
    site = replace(site, proc=Path("/proc"), probes=lambda: ThreadProbes(statvfs))  # the trainer is this process
    turned = Turned(Agent(settings_for(tmp_path), site, Sender(httpserver.url_for(""), "t", 30.0, node="node1")))
    writer = RingWriter.create(tmp_path / "rings", Identity("r", "r-1", "node1", 0, 0, 1, NS))
    step = 0
    for _ in range(3):
        writer.step(step, NS, NS + 10**9, None, 0, 0.0, 0.0, 0.0, 0, 0)
        step += 1
        turned.turn()
    turned.turn()
    assert json.loads((tmp_path / "state/agent.rings.json").read_text()).popitem()[1] == 3
    turned.agent.close()
    writer.step(step, NS, NS + 10**9, None, 0, 0.0, 0.0, 0.0, 0, 0)
    again = Agent(settings_for(tmp_path), site, Sender(httpserver.url_for(""), "t", 30.0, node="node1"))
    again.turn(AT, time.monotonic())
    again.close()
    assert [a["step"] for name, a in received.logs if name == "surefoot.step"] == [0, 1, 2, 3]


def test_a_hung_mount_leaves_everything_else_fresh(
    tmp_path: Path, httpserver: HTTPServer, received: Received, make_site: Callable[..., Site]
) -> None:
    back = threading.Event()

    def probe(path: str) -> Usage:
        if path == "/mnt/big data":
            back.wait()
        return Usage(1000, 100, 10, 5)

    turned = Turned(Agent(settings_for(tmp_path), make_site(probe, 0.3), Sender(httpserver.url_for(""), "t", 30.0, node="node1")))
    ok: dict[str, float] = {}
    for _ in range(100):
        turned.turn(2.0)
        families = text_string_to_metric_families(turned.agent.board.page(turned.clock))
        ok = {s.labels["mount_point"]: s.value for f in families if f.name == "surefoot_mount_probe_ok" for s in f.samples}
        if sum(ok.values()) == 5:  # a machine that pauses for longer than the probes' time-out is looked at again
            break
    back.set()
    turned.agent.close()
    assert ok == {"/": 1, "/dev/shm": 1, "/mnt/big data": 0, "/mnt/fast": 1, "/mnt/jfs": 1, "/scratch": 1}
    assert not received.events("collector_failed")


# C06
def test_a_collector_that_fails_is_told_once_and_its_values_vanish_after_two_intervals(
    tmp_path: Path, httpserver: HTTPServer, received: Received, site: Site, proc: Path
) -> None:
    copy = shutil.copytree(proc, tmp_path / "proc")
    turned = Turned(Agent(settings_for(tmp_path), replace(site, proc=copy), Sender(httpserver.url_for(""), "t", 30.0, node="node1")))
    turned.turn()
    turned.turn()
    assert "surefoot_disk_reads_total" in turned.agent.board.page(turned.clock)
    (copy / "diskstats").unlink()
    for _ in range(12):
        turned.turn(1.0)
    page = turned.agent.board.page(turned.clock)
    age = age_of(page, "disk")
    for _ in range(6):
        turned.turn(1.0)
    later = age_of(turned.agent.board.page(turned.clock), "disk")
    turned.agent.close()
    assert age >= 5 and later >= age + 5, "how old the last good reading is grows"
    assert "surefoot_disk_reads_total" not in page and "surefoot_host_load1" in page
    assert 'surefoot_agent_collect_ok{node="node1",collector="disk"} 0' in page
    assert [e["code"] for e in received.events("collector_failed")] == ["disk"]


def age_of(page: str, collector: str) -> float:
    samples = (s for f in text_string_to_metric_families(page) if f.name == "surefoot_agent_age_seconds" for s in f.samples)
    return next(s.value for s in samples if s.labels["collector"] == collector)


def test_that_there_is_nothing_of_something_any_more_is_told_with_the_pass_that_sees_it(
    tmp_path: Path, httpserver: HTTPServer, received: Received, site: Site
) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "state").write_text("1: DOWN\n")
    every_second = Entry("rdma_port", (RDMA_PORT,), RdmaCollector, every=1.0)
    sender = Sender(httpserver.url_for(""), "t", 30.0, node="node1")
    turned = Turned(Agent(settings_for(tmp_path, interval=60.0), replace(site, sys=tmp_path / "sys"), sender, [every_second]))
    for _ in range(8):
        turned.turn()
    assert received.metrics["agent.absent"] == [0], "as often as its interval says"
    shutil.rmtree(tmp_path / "sys")
    for _ in range(8):
        turned.turn()
    turned.agent.close()
    assert received.metrics["agent.absent"] == [0, 1]


def test_one_pass_gives_what_the_catalogue_names(tmp_path: Path, site: Site) -> None:
    names = {f.name for f in text_string_to_metric_families(as_page(look(settings_for(tmp_path), site), "node1", AT))}
    assert {"surefoot_host_load1", "surefoot_mount_probe_ok", "surefoot_disk_reads", "surefoot_agent_collect_ok"} <= names


def environment(folder: Path) -> dict[str, str]:
    """For an agent of its own; nobody listens where ingest should be."""
    ingest, own = free_ports(2)
    given = {"STATE_DIR": str(folder / "state"), "RING_DIR": str(folder / "rings"), "NODE": "node1", "INGEST__PORT": str(ingest)}
    given |= {"INGEST__TOKEN": "t" * 32, "AGENT__PORT": str(own), "AGENT__INTERVAL": "0.5", "AGENT__BUFFER_BYTES": "100000"}
    return os.environ | {f"SUREFOOT_{key}": value for key, value in given.items()}


ONCE = f"""
import sys
from exporters.serve import Roots, show
from pipeline.settings import load
show(load(), Roots(), json=False)
sys.exit(f"loaded: {{heavy}}" if (heavy := [m for m in {HEAVY} if m in sys.modules]) else 0)
"""


def test_once_prints_a_page_without_ingest_and_without_loading_anything_heavy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ONCE]
    done = subprocess.run(command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    names = {f.name for f in text_string_to_metric_families(done.stdout)}
    assert {"surefoot_host_load1", "surefoot_mount_size_bytes", "surefoot_agent_collect_ok"} <= names
    assert not (tmp_path / "state").exists()


SERVE = "from exporters.serve import serve; from pipeline.settings import load; serve(load())"


def test_an_agent_without_a_token_says_where_it_is_missing_and_makes_none(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"SUREFOOT_INGEST__TOKEN": ""}
    done = subprocess.run([sys.executable, "-c", SERVE], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no ingest token: there is no token: set ingest.token to ingest's, or copy its file ingest.token" in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("same", ["AGENT__PORT", "STATE_DIR"])
def test_a_second_agent_is_refused_before_it_touches_what_the_first_one_keeps(tmp_path: Path, same: str) -> None:
    env = environment(tmp_path)
    other = environment(tmp_path / "other") | {f"SUREFOOT_{same}": env[f"SUREFOOT_{same}"]}
    with subprocess.Popen([sys.executable, "-c", SERVE], env=env, cwd=ROOT, stderr=subprocess.DEVNULL) as first:
        try:
            page_of(int(env["SUREFOOT_AGENT__PORT"]))
            kept = sorted(str(p) for p in (tmp_path / "state/agent.buffer").glob("*-e-*"))
            done = subprocess.run(
                [sys.executable, "-c", SERVE], env=other, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
            )
            assert sorted(str(p) for p in (tmp_path / "state/agent.buffer").glob("*-e-*")) == kept
        finally:
            first.terminate()
    said = f"another agent (process {first.pid}) works in {tmp_path}/state" if same == "STATE_DIR" else "cannot listen on 127.0.0.1"
    assert done.returncode == 1 and said in done.stderr
    assert not (tmp_path / "other/state").exists()


def test_an_agent_without_ingest_stays_small_serves_its_page_and_ends_soon_after_sigterm(tmp_path: Path) -> None:
    env = environment(tmp_path)
    (tmp_path / "rings").mkdir()
    writers = [RingWriter.create(tmp_path / "rings", Identity("r", "r-1", "node1", rank, 0, 2, NS)) for rank in (0, 1)]
    with subprocess.Popen([sys.executable, "-c", SERVE], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as agent:
        try:
            page = page_of(int(env["SUREFOOT_AGENT__PORT"]))
            small = status_of(agent.pid)
            for step in range(1000):
                for writer in writers:
                    writer.step(step, NS, NS + 10**9, None, 0, 0.0, 0.0, 0.0, 0, 0)
                time.sleep(0.001)
            large = status_of(agent.pid)
            children = children_of(agent.pid)
            began = time.monotonic()
        finally:
            agent.send_signal(signal.SIGTERM)
        assert agent.wait(60) == 0
        assert time.monotonic() - began < 15  # it takes three seconds: a machine that pauses must not fail this
        said = agent.stderr.read() if agent.stderr else ""
    assert 'surefoot_agent_collect_ok{node="node1",collector="mount"} 1' in page
    assert said.count("cannot reach") == 1
    assert children, "mounts are asked by a process of their own"
    assert [child for child in children if Path(f"/proc/{child}").exists()] == [], "and it is gone when the agent is"
    assert large[0] <= small[0] + 2, "threads"
    assert large[1] - small[1] < 16_000, "kB of memory"


def page_of(port: int) -> str:
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                if text := answer.read().decode():
                    return text
        except OSError:
            assert time.monotonic() < end
        time.sleep(0.1)


def children_of(pid: int) -> list[str]:
    return [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def status_of(pid: int) -> tuple[int, int]:
    """Threads and resident kB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["Threads"]), int(status["VmRSS"].split()[0])


def test_collectors_know_the_gpus_by_their_address_and_after_a_restart_at_once(
    tmp_path: Path, received: Received, site: Site, httpserver: HTTPServer
) -> None:
    (tmp_path / "state").mkdir()
    sites: list[tuple[Site, dict[str, str]]] = []  # with the GPUs that are known when the collector is made

    def make(site: Site) -> OomCollector:
        sites.append((site, dict(site.gpus())))
        return OomCollector(site)

    peek = Entry("peek", (), make)
    entries = [next(entry for entry in COLLECTORS if entry.name == "gpu"), peek]
    known = {"0000:1b:00.0": "GPU-6b1c3a52-0000-4f31-9d0e-0000000000a0", "0000:5d:00.0": "GPU-6b1c3a52-0000-4f31-9d0e-0000000000a1"}
    for before in ({}, known):
        turned = Turned(Agent(settings_for(tmp_path), site, Sender(httpserver.url_for(""), "t", 30.0, node="node1"), entries))
        for _ in range(3):
            turned.turn()
        site_of_it, at_first = sites[-1]
        assert (at_first, site_of_it.gpus()) == (before, known)
        turned.agent.close()


def test_what_an_agent_kept_through_an_outage_and_its_own_sigkill_is_sent_by_the_next(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"SUREFOOT_AGENT__TIMEOUT": "1"}
    with subprocess.Popen([sys.executable, "-c", SERVE], env=env, cwd=ROOT, stderr=subprocess.DEVNULL) as first:
        end = time.monotonic() + 60
        while not (events := list((tmp_path / "state/agent.buffer").glob("[!.]*-e-*"))) and time.monotonic() < end:
            time.sleep(0.05)
        first.kill()
    assert events, "the event of its start waits on disk"
    with HTTPServer(port=int(env["SUREFOOT_INGEST__PORT"])) as server:
        received = Received(server)
        with subprocess.Popen([sys.executable, "-c", SERVE], env=env, cwd=ROOT, stderr=subprocess.DEVNULL) as second:
            end = time.monotonic() + 60
            while (
                len(received.events("agent_started")) < 2 or any((tmp_path / "state/agent.buffer").iterdir())
            ) and time.monotonic() < end:
                time.sleep(0.05)
            second.terminate()
        ids = [str(event["id"]) for event in received.events("agent_started")]
    assert len(ids) == len(set(ids)) == 2
