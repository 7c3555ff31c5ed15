"""A real node_exporter on this machine: what its page says under our names is what our own collectors read."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from exporters.collector import Foreign, Reading, Site, readings_in
from exporters.encode import accept
from exporters.host.machine import HostCollector
from exporters.registry import COLLECTORS
from exporters.scrape import ScrapeCollector
from pipeline.catalog.metrics import HOST, Kind
from pipeline.settings import AgentSettings, ScrapeSettings
from surefoot.drill.stack import free_ports

EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(EXPORTER is None, reason="needs Debian's prometheus-node-exporter")]


@pytest.fixture
def url() -> Iterator[str]:
    (port,) = free_ports(1)
    process = subprocess.Popen([str(EXPORTER), f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}/metrics"
    process.terminate()
    process.wait(30)


def test_node_exporters_page_says_under_our_names_what_we_read_ourselves(url: str) -> None:
    site = Site("here", settings=AgentSettings(interval=0.1, scrape=(ScrapeSettings(name="node", url=url),)))
    collector = ScrapeCollector(site)
    for _ in range(100):
        found = list(collector.collect(datetime.now(UTC)))
        theirs = {(r.family.name, *r.identity.values()): r for r in found if isinstance(r, Reading)}
        if theirs["scrape", "here", "node"].values["scrape.ok"]:
            break
        threading.Event().wait(0.1)
    assert theirs["scrape", "here", "node"].values["scrape.rejected"] == 0
    (mine,) = HostCollector(site).collect(datetime.now(UTC))
    host = theirs["host", "here"]
    assert host.since == mine.since
    told = {name: value for name, value in host.values.items() if value is not None}
    assert {"host.cpu.busy", "host.memory.total", "host.boot", "host.oom_kills"} <= told.keys()
    for metric in HOST.metrics:
        ours, other = mine.values[metric.name], told.get(metric.name)
        if other is None or ours is None:
            continue
        if metric.kind is Kind.COUNTER or metric.name in ("host.memory.total", "host.boot"):
            assert 0 <= ours - other <= max(5.0, ours * 0.001), metric.name
    disks = next(entry for entry in COLLECTORS if entry.name == "disk").make(site)
    seen = {r.identity["disk"] for r in readings_in(disks.collect(datetime.now(UTC)))}
    assert {key[2] for key in theirs if key[0] == "disk"} <= seen, "nothing is a disk there that is none here"
    assert accept(list(theirs.values()))[1] == 0
    assert len([one for one in found if isinstance(one, Foreign)]) > 100
