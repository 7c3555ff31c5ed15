"""Heartbeats for NVRx's ft_launcher, against a client written by hand that says what it was asked."""

import sys
from pathlib import Path

import pytest

from surefoot.drill import heartbeats

CLIENT = """
class RankMonitorClient:
    asked = []
    def __getattr__(self, name):
        return lambda: self.asked.append(name)
"""


@pytest.fixture
def nvrx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "nvidia_resiliency_ext/fault_tolerance"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text(CLIENT)
    for name in [name for name in sys.modules if name.startswith("nvidia_resiliency_ext")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_training_that_nobody_listens_to_sends_none(nvrx: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FT_RANK_MONITOR_IPC_SOCKET", raising=False)
    heartbeats.start()()
    assert "nvidia_resiliency_ext" not in sys.modules, "nor is it loaded"


def test_one_is_sent_a_step_and_after_25_the_limits_are_calculated_once(nvrx: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FT_RANK_MONITOR_IPC_SOCKET", "/tmp/x")
    beat = heartbeats.start()
    from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient

    for _ in range(60):
        beat()
    asked = RankMonitorClient.asked
    assert asked[:26] == ["init_workload_monitoring", *["send_heartbeat"] * 25]
    assert asked[26] == "calculate_and_set_hb_timeouts"
    assert (asked.count("calculate_and_set_hb_timeouts"), asked.count("send_heartbeat")) == (1, 60)


def test_it_is_installed_where_its_package_is(nvrx: None) -> None:
    assert heartbeats.installed()
