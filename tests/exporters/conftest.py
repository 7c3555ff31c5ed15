"""A machine made of files: /proc and /sys as small hand-written text, mounts and disks that answer as told."""

import json
from collections.abc import Callable, Iterator
from ctypes import CDLL
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from exporters.collector import RankProcess, Site
from exporters.sources.storage.probes import Quota, Quotas, Smart, ThreadProbes, Usage, Written
from pipeline.settings import AgentSettings, KubernetesSettings, RedfishSettings, ScrapeSettings, SlurmSettings
from tests.fakes.kubernetes import Cluster, served

FIXTURES = Path(__file__).parents[1] / "fixtures"
PAGES = ("alluxio", "juicefs", "fluid", "minio", "leaf-01", "subnet", "spine")
ENGINE = FIXTURES / "pages/engine.prom"
USAGES = {
    "/": Usage(100_000_000_000, 25_000_000_000, 6_000_000, 5_000_000),
    "/dev/shm": Usage(8_388_608_000, 8_000_000_000, 2_048_000, 2_047_990),
    "/mnt/big data": Usage(1 << 50, 1 << 40, 1 << 32, 1 << 31),
    "/mnt/fast": Usage(1 << 40, 1 << 39, 1000, 900),
    "/mnt/jfs": Usage(1 << 50, 1 << 49, 0, 0),
    "/scratch": Usage(2_000_000_000_000, 0, 0, 0),
}
DRIVERS = {  # what mlx5's `ethtool -S` says, a few of its lines
    "eth2": {
        "rx_packets_phy": 7000,
        "rx_global_pause": 0,
        "rx_prio0_pause": 0,
        "rx_prio3_pause": 400,
        "rx_prio3_pause_duration": 2_500_000,
        "tx_prio3_pause": 30,
        "tx_prio3_pause_duration": 1_000,
        "tx_prio4_pause": 2,
        "rx_pcs_symbol_err_phy": 5,
        "rx_discards_phy": 6,
        "tx_discards_phy": 1,
    }
}


QUOTAS = {"/mnt/big data/ckpt": Quotas((Quota("project 7", 900_000_000, 1_000_000_000, 120, 1000), Quota("user 1000", 5, None, 3, 10)))}
PROBED = {"/mnt/big data/ckpt": Written(0.001, 0.02, 0.0005, 0.0001)}
SMART = Smart((FIXTURES / "nvme/smart-log.hex").read_text())


@pytest.fixture
def proc() -> Path:
    """The fixture's /proc."""
    return FIXTURES / "proc"


@pytest.fixture
def gpus(fake_nvml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs, in this very process: a library that is loaded already is found by its name."""
    CDLL(str(fake_nvml / "libnvidia-ml.so.1"))
    monkeypatch.setenv("FAKE_NVML", str(FIXTURES / "nvml_two_gpus.txt"))


@pytest.fixture
def bmc(httpserver: HTTPServer) -> str:
    """The address of a management controller that answers with what the fixture holds."""
    for path, answer in json.loads((FIXTURES / "redfish/controller.json").read_text()).items():
        httpserver.expect_request(path).respond_with_json(answer)
    return httpserver.url_for("").rstrip("/")


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[KubernetesSettings]:
    """How to ask an API server of Kubernetes that has what the fixture holds."""
    cluster = Cluster()
    for path, objects in json.loads((FIXTURES / "kubernetes.json").read_text()).items():
        for one in objects:
            cluster.put(path, one)
    (tmp_path / "api-token").write_text(cluster.token)
    with served(cluster) as url:
        yield KubernetesSettings(url=url, token_file=str(tmp_path / "api-token"), ca_file="")


@pytest.fixture
def site(proc: Path, gpus: None, bmc: str, api_server: KubernetesSettings) -> Site:
    """The fixture machine, all its mounts well."""
    made = site_with(proc, USAGES.__getitem__, 30.0)
    own = {"redfish": RedfishSettings(url=bmc), "kubernetes": api_server}
    return replace(made, settings=made.settings.model_copy(update=own))


@pytest.fixture
def make_site(proc: Path) -> Callable[..., Site]:
    """Makes the fixture machine with another way of asking mounts, and how many seconds those have that hang."""
    return lambda probe, timeout=30.0: site_with(proc, probe, timeout)


def site_with(proc: Path, probe: Callable[[str], Usage], probe_timeout: float) -> Site:
    return Site(
        "node1",
        proc,
        Path("/dev/shm"),
        ticks=100.0,
        usage=USAGES.__getitem__,
        probes=lambda: ThreadProbes(probe),
        probe_timeout=probe_timeout,
        writes=lambda: ThreadProbes(PROBED.__getitem__),
        quotas=lambda: ThreadProbes(QUOTAS.__getitem__),
        smarts=lambda: ThreadProbes({"/dev/nvme0": SMART}.__getitem__),
        kubelet=lambda _: (FIXTURES / "kubelet/summary.json").read_text(),
        sys=FIXTURES / "sys",
        cgroups=FIXTURES / "sys/fs/cgroup",
        kmsg=FIXTURES / "kmsg",
        clock_offset=lambda: 0.25,
        ethtool=lambda interface: DRIVERS.get(interface, {}),
        ranks=lambda: (RankProcess("run1", 0, 4711, 1), RankProcess("run1", 1, 4712, 2)),
        settings=AgentSettings(
            probe_paths=tuple(map(Path, PROBED)),
            tiers={"/dev/shm": "memory", "/mnt/fast": "ssd"},
            scrape=(
                ScrapeSettings(name="vllm", url=ENGINE.as_uri()),
                *(ScrapeSettings(name=name, url=(FIXTURES / f"pages/{name}.prom").as_uri()) for name in PAGES),
            ),
            ascend_logs=FIXTURES / "ascend/log",
            schedulers=("slurm-cluster", "kubernetes"),
            slurm=SlurmSettings(scontrol=str(FIXTURES / "bin/scontrol")),
        ),
    )
