"""A real Prometheus server scrapes a real agent: what it then answers is what the agent read."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from surefoot.drill.stack import free_ports

ROOT = Path(__file__).parents[2]
TREE = ROOT / "tests/fixtures"
PROMETHEUS = shutil.which("prometheus")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not here (Debian: prometheus)")]


@contextmanager
def running(command: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out, subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def asked(port: int, query: str) -> list[dict[str, object]]:
    """The samples that answer `query` now; none while nobody answers."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []


def test_a_prometheus_server_has_every_series_of_the_page(tmp_path: Path) -> None:
    own, ingest, server = free_ports(3)
    given = {"NODE": "node1", "STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "AGENT__INTERVAL": "0.5"}
    given |= {"INGEST__TOKEN": "t" * 32, "INGEST__PORT": str(ingest), "AGENT__PORT": str(own)}
    env = os.environ | {f"SUREFOOT_{key}": value for key, value in given.items()}
    agent = [sys.executable, "-m", "surefoot", "agent", "--path.procfs", str(TREE / "proc"), "--path.sysfs", str(TREE / "sys")]
    agent += ["--path.kmsg", os.devnull]
    config = tmp_path / "prometheus.yml"
    job = {"job_name": "surefoot", "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]}
    config.write_text(json.dumps({"scrape_configs": [job]}))
    prometheus = [str(PROMETHEUS), f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    prometheus += [f"--web.listen-address=127.0.0.1:{server}", "--log.level=warn"]
    with running(agent, env, tmp_path / "agent.log"), running(prometheus, env, tmp_path / "prometheus.log"):
        end = time.monotonic() + 120
        while not asked(server, "surefoot_sender_reachable") or not asked(server, "surefoot_disk_reads_total"):
            assert time.monotonic() < end, (tmp_path / "prometheus.log").read_text() + (tmp_path / "agent.log").read_text()
            time.sleep(0.5)
        (load,) = asked(server, "surefoot_host_load1")
        reads = asked(server, "surefoot_disk_reads_total")
        mounts = asked(server, "surefoot_mount_read_only")
        equal = asked(server, 'scrape_samples_scraped{job="surefoot"} == scalar(count({__name__=~"surefoot_.*"}))')
        said = (tmp_path / "prometheus.log").read_text()
    assert load["value"][1] == "1.25"  # type: ignore[index]
    assert ("nvme0n1", "10") in {(one["metric"]["disk"], one["value"][1]) for one in reads}  # type: ignore[index]
    assert {one["metric"]["mount_point"] for one in mounts} >= {"/", "/dev/shm", "/mnt/big data", "/scratch"}  # type: ignore[index]
    assert equal, "none was refused, none is there twice"
    assert said == ""
