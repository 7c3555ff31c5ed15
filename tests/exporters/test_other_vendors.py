"""AMD's and Huawei's accelerators, from fixtures written after the kernel's and the vendor's documentation."""

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Observation, RankProcess, Reading, Site
from exporters.encode import accept
from exporters.gpu.collector import GpuCollector
from exporters.gpu.vendor import VendorGpus
from exporters.sources.gpu import ascend
from exporters.sources.gpu.amdgpu import AmdGpu
from exporters.sources.gpu.vendors import VENDORS, Vendor
from pipeline.catalog.metrics import GPU
from pipeline.records import Event

FIXTURES = Path(__file__).parents[1] / "fixtures"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
MIB = 1 << 20
TABLE = (FIXTURES / "npu_smi_info.txt").read_text()
AMD, HUAWEI = (next(vendor for vendor in VENDORS if vendor.name == name) for name in ("amd", "huawei"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / "amdgpu", tmp_path / "sys"))


def bare(tmp_path: Path, sys: Path) -> Site:
    return Site("node1", tmp_path / "proc", sys=sys, probe_timeout=30.0, ranks=lambda: (RankProcess("run1", 3, 4711, 1),))


def of(readings: list[Observation], family: str = "gpu") -> list[Reading]:
    return [one for one in readings if isinstance(one, Reading) and one.family.name == family]


def told(reading: Reading) -> dict[str, float | int | None]:
    return {name: value for name, value in reading.values.items() if value is not None and name != "gpu.probe.time"}


def test_an_amd_gpu_is_told_with_what_sysfs_has_in_base_units(tree: Path, tmp_path: Path) -> None:
    readings = list(VendorGpus(bare(tmp_path, tree), AMD).collect(AT))
    (gpu,) = of(readings)
    assert gpu.identity == {"node": "node1", "uuid": "GPU-2f1c9d0e5b3a7744"}
    assert gpu.attributes["pci"] == "0000:c1:00.0" and gpu.attributes["vendor"] == "amd"
    assert told(gpu) == {
        **{"gpu.up": 1, "gpu.probe_hung": 0, "gpu.counters.fallen": 0, "gpu.processes": 1},
        **{"gpu.utilization": 0.87, "gpu.memory.utilization": 0.33},
        **{"gpu.memory.total": 206141652992, "gpu.memory.used": 103070826496, "gpu.memory.free": 103070826496},
        **{"gpu.temperature": 58.0, "gpu.memory.temperature": 49.0, "gpu.temperature.slowdown": 100.0},
        **{"gpu.power": 412.0, "gpu.power.limit": 750.0, "gpu.clock.sm": 2100000000, "gpu.clock.memory": 1300000000},
        **{"gpu.pcie.width": 16, "gpu.pcie.width.max": 16, "gpu.pcie.generation": 4, "gpu.pcie.generation.max": 5, "gpu.pcie.replays": 2},
        **{"gpu.ecc.volatile.corrected": 15, "gpu.ecc.volatile.uncorrected": 1},
        **{"gpu.ecc.volatile.dram.corrected": 12, "gpu.ecc.volatile.dram.uncorrected": 1},
        **{"gpu.ecc.volatile.sram.corrected": 3, "gpu.ecc.volatile.sram.uncorrected": 0},
        **{"gpu.retired.double_bit": 1, "gpu.retired.pending": 1},
    }
    (process,) = of(readings, "gpu_process")
    assert process.values == {"gpu_process.memory": 96636764160} and process.attributes == {"run": "run1", "rank": "3"}
    assert accept(one for one in readings if isinstance(one, Reading))[1] == 0


def test_an_amd_gpu_that_leaves_the_bus_is_lost_once(tree: Path, tmp_path: Path) -> None:
    collector = VendorGpus(bare(tmp_path, tree), AMD)
    list(collector.collect(AT))
    shutil.rmtree(tree / "class/drm/card1")
    passes = [list(collector.collect(AT)) for _ in range(2)]
    assert [told(of(one)[0]) for one in passes] == [{"gpu.up": 0, "gpu.probe_hung": 0}] * 2
    (event,) = [one for readings in passes for one in readings if isinstance(one, Event)]
    assert (event.kind, event.device) == ("gpu_lost", "GPU-2f1c9d0e5b3a7744")


@given(
    st.dictionaries(
        st.sampled_from(sorted(p.name for p in (FIXTURES / "amdgpu/class/drm/card1/device").iterdir() if p.is_file())), st.binary()
    )
)
def test_whatever_sysfs_says_gives_values_or_counted_rejections(files: dict[str, bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: files.get(self.name, b"1"))
        for found in AmdGpu(FIXTURES / "amdgpu").roll(renew=False, hanging=()).found:
            state = AmdGpu(FIXTURES / "amdgpu").read(found).state
            values = {metric.name: getattr(state, GPU.column(metric), None) for metric in GPU.metrics}
            (accepted,), rejected = accept([Reading(GPU, {"node": "n", "uuid": found.device.uuid}, values)])
            assert len(accepted.values) + rejected == sum(value is not None for value in values.values())


def test_npus_are_told_with_what_the_table_has_in_base_units() -> None:
    first, second = ascend.parse(TABLE)
    assert first.device is not None and second.device is not None
    assert (first.device.uuid, first.device.model, first.device.driver) == ("NPU-0000:c1:00.0", "Ascend 910B3", "24.1.0")
    assert (first.state.power, first.state.temperature, first.state.utilization) == (93.9, 45.0, 0.12)
    assert (first.state.memory_used, first.state.memory_total) == (3389 * MIB, 65536 * MIB)
    assert (second.state.power, second.state.temperature, second.state.memory_free) == (None, 51.0, 0)
    assert [(user.pid, user.memory) for user in second.users] == [(4711, 62000 * MIB)] and first.users == []


@given(st.one_of(st.text(), st.lists(st.sampled_from([*TABLE.splitlines(), "|||", "| 0 | 0:0:0 |", "| | | |"])).map("\n".join)))
def test_any_text_gives_chips_that_can_be(text: str) -> None:
    for chip in ascend.parse(text):
        assert chip.device is not None and chip.device.uuid.startswith("NPU-")
        values = {metric.name: getattr(chip.state, GPU.column(metric), None) for metric in GPU.metrics}
        accept([Reading(GPU, {"node": "n", "uuid": chip.device.uuid}, values)])


def tool(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "npu-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npu-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_the_tool_is_run_and_one_that_fails_is_an_error_and_no_old_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "bin", f"cat {FIXTURES / 'npu_smi_info.txt'}", monkeypatch)
    collector = VendorGpus(bare(tmp_path, tmp_path / "sys"), HUAWEI)
    assert [reading.values["gpu.up"] for reading in of(list(collector.collect(AT)))] == [1, 1]
    tool(tmp_path / "bin", "echo dcmi module initialize failed; exit 255", monkeypatch)
    with pytest.raises(OSError, match="npu-smi ended with 255: dcmi module initialize failed"):
        list(collector.collect(AT))


def test_what_the_tool_told_once_is_not_told_again() -> None:
    driver = ascend.Ascend(lambda: TABLE)
    found = driver.roll(renew=False, hanging=()).found
    assert driver.read(found[0]).state.power == 93.9
    with pytest.raises(OSError, match="nothing new"):
        driver.read(found[0])


def test_a_machine_without_any_of_them_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    site = replace(bare(tmp_path, tmp_path / "sys"))
    assert list(GpuCollector(site, (AMD, HUAWEI)).collect(AT)) == []


def test_one_vendors_trouble_leaves_the_others_their_readings(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "bin", "exit 1", monkeypatch)
    device = tree / "bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x19e5\n")
    (device / "class").write_text("0x120000\n")
    assert len(of(list(GpuCollector(bare(tmp_path, tree), (AMD, HUAWEI)).collect(AT)))) == 1
    with pytest.raises(OSError, match="npu-smi ended with 1"):
        list(GpuCollector(bare(tmp_path, tree), (HUAWEI,)).collect(AT))


def test_a_driver_is_looked_for_rarely_where_the_bus_has_no_device_and_at_once_where_one_appears(tmp_path: Path) -> None:
    clock, looks = [1000.0], []

    def load(proc: Path, sys: Path) -> None:
        looks.append(clock[0])

    gpus = VendorGpus(Site("n", proc=tmp_path, sys=tmp_path, probe_timeout=10.0), Vendor("other", "Other", 0x1234, load), lambda: clock[0])
    for second in (1000.0, 1004.0, 1059.0, 1060.0, 1064.0):
        clock[0] = second
        assert list(gpus.collect(AT)) == []
    assert looks == [1000.0, 1060.0]
    device = tmp_path / "bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1234\n")
    (device / "class").write_text("0x030200\n")
    clock[0] = 1068.0
    assert list(gpus.collect(AT)) == []
    assert looks == [1000.0, 1060.0, 1068.0]
