"""A machine made of files: /proc as small hand-written text, mounts that answer as told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.collector import RankProcess, Site
from exporters.sources.probes import ThreadProbes, Usage

FIXTURES = Path(__file__).parents[1] / "fixtures"
USAGES = {
    "/": Usage(100_000_000_000, 25_000_000_000, 6_000_000, 5_000_000),
    "/dev/shm": Usage(8_388_608_000, 8_000_000_000, 2_048_000, 2_047_990),
    "/mnt/big data": Usage(1 << 50, 1 << 40, 1 << 32, 1 << 31),
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


@pytest.fixture
def proc() -> Path:
    """The fixture's /proc."""
    return FIXTURES / "proc"


@pytest.fixture
def site(proc: Path) -> Site:
    """The fixture machine, all its mounts well."""
    return site_with(proc, USAGES.__getitem__, 30.0)


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
        cgroups=FIXTURES / "sys/fs/cgroup",
        sys=FIXTURES / "sys",
        ethtool=lambda interface: DRIVERS.get(interface, {}),
        ranks=lambda: (RankProcess("run1", 0, 4711, 1), RankProcess("run1", 1, 4712, 2)),
    )
