"""Our readings under dcgm-exporter's names, against values worked out by hand from the scenario of the fixture's two GPUs."""

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading, Site
from exporters.compat.dcgm import dcgm_text
from exporters.encode import accept
from exporters.gpu.collector import GpuCollector

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIRST = "GPU-6b1c3a52-0000-4f31-9d0e-0000000000a0"
# What the panels of dcgm-exporter's own Grafana dashboard (12239) ask for.
PANELS = {
    "DCGM_FI_DEV_GPU_TEMP": 61.0,
    "DCGM_FI_DEV_POWER_USAGE": 683.25,
    "DCGM_FI_DEV_SM_CLOCK": 1755.0,
    "DCGM_FI_DEV_GPU_UTIL": 97.0,
    "DCGM_FI_DEV_FB_USED": 65536.0,  # 68,719,476,736 bytes in MiB
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.6175,
}


def page(site: Site) -> dict[str, dict[str, float]]:
    readings, _ = accept(one for one in GpuCollector(site).collect(AT) if isinstance(one, Reading))
    families = list(text_string_to_metric_families(dcgm_text(readings)))
    return {s.name: {t.labels["UUID"]: t.value for t in f.samples if t.name == s.name} for f in families for s in f.samples}


def test_the_stock_dashboard_finds_its_series_with_their_units(site: Site) -> None:
    found = page(site)
    assert {name: found[name][FIRST] for name in PANELS} == PANELS
    assert found["DCGM_FI_DEV_FB_FREE"][FIRST] == 15422  # 16,171,139,072 bytes
    assert found["DCGM_FI_DEV_MEM_COPY_UTIL"][FIRST] == 41
    # The parser gives every counter the ending that dcgm-exporter's names lack.
    assert found["DCGM_FI_DEV_POWER_VIOLATION_total"][FIRST] == 5e9


def test_labels_are_theirs(site: Site) -> None:
    readings, _ = accept(one for one in GpuCollector(site).collect(AT) if isinstance(one, Reading))
    expected = (
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{FIRST}",pci_bus_id="00000000:1B:00.0",device="nvidia0",'
        'modelName="NVIDIA H100 80GB HBM3",Hostname="node1",DCGM_FI_DRIVER_VERSION="575.57.08"} 61\n'
    )
    assert expected in dcgm_text(readings)


def test_what_is_absent_has_no_line_and_no_gpu_no_page(site: Site) -> None:
    assert set(page(site)["DCGM_FI_DEV_GPU_UTIL"]) == {FIRST}, "the partitioned one has no utilisation"
    assert dcgm_text([]) == ""
    assert "XID" not in dcgm_text(accept(one for one in GpuCollector(site).collect(AT) if isinstance(one, Reading))[0])
