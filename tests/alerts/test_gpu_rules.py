"""The rows of GPU faults, over readings four seconds apart: what opens, after how many, and what opens nothing."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.detectors import fault_rule
from alerts.detectors.amounts import said_with
from alerts.snapshot import Snapshot
from alerts.watch import Watch
from alerts.watched import Place, Standing, judge
from pipeline.catalog.faults import BY_NAME, Fault
from pipeline.catalog.layers import Layer
from pipeline.catalog.metrics import GPU, HOST
from pipeline.catalog.rules import RULES
from pipeline.records import Event, FindingTransition
from pipeline.settings import Settings

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
GAP = 35.0
LABELS = {"node": "a", "uuid": "GPU-1", "pci": "0000:3b:00.0", "link": "4"}
BUSY = {"gpu.utilization": 0.98}
HEALTHY = {"gpu.probe_hung": 0.0, "gpu.probe.time": 0.2}
IDLE = {"gpu.utilization": 0.0}
BESIDE = {"gpu.probe.time": 2.0, "gpu.temperature": 91.0, "gpu.power.limit": 700.0}  # read with the rest

Values = Mapping[str, float | None]


def opened(fault: Fault, readings: Sequence[Values]) -> tuple[int | None, str]:
    """At which reading (from 1) the first row of `fault` is raised, and what it says; None where none is."""
    standings = [Standing(row, Place("a", "uuid", "GPU-1", LABELS), NOW) for row in RULES if row.fault is fault]
    last: dict[str, tuple[datetime, float]] = {}
    for number, values in enumerate(readings, 1):
        at = NOW + timedelta(seconds=4 * number)
        for standing in standings:
            if set(values) & {m.name for m in standing.rule.family.metrics}:
                said, value = judge(standing.rule, (at, values), last, GAP)
                shown = BESIDE | {name: told for name, told in values.items() if told is not None}
                standing.observe(at, said, shown if value is None else {"value": value, **shown}, GAP)
        last |= {name: (at, value) for name, value in values.items() if value is not None}
        if raised := [one for one in standings if one.raised]:
            return number, said_with(raised[0].rule.says, raised[0], raised[0].seen[-1])
    return None, ""


def each(name: str, values: Sequence[float], **more: float) -> list[Values]:
    beside = {key.replace("__", "."): float(told) for key, told in more.items()}
    return [{name: float(value), **beside} for value in values]


@pytest.mark.parametrize(
    ("fault", "readings", "at"),
    [
        ("gpu_fell_off_bus", each("gpu.up", [1, 1, 0]), 3),
        ("gpu_fell_off_bus", each("gpu.probe_hung", [0, 1, 1]), None),  # unknown is not down
        ("gpu_driver_hang", [HEALTHY, {"gpu.probe_hung": 1.0, "gpu.probe.time": 2.0}, {"gpu.probe_hung": 1.0, "gpu.probe.time": 4.0}], 3),
        ("gpu_driver_hang", [HEALTHY, *[{"gpu.probe_hung": 1.0, "gpu.probe.time": 2.0}] * 9], None),  # slow, and answers every time
        ("gpu_ecc_uncorrectable", each("gpu.ecc.volatile.uncorrected", [0, 0, 1]), 3),
        ("gpu_ecc_uncorrectable", each("gpu.ecc.aggregate.uncorrected", [7, 7, 7, 7]), None),  # what happened in its life
        ("gpu_ecc_uncorrectable", each("gpu.remap.failed", [0, 1]), 2),
        ("gpu_row_remap_pending", each("gpu.remap.pending", [0, 1, 1]), 3),
        ("gpu_row_remap_pending", each("gpu.remap.uncorrectable", [0, 1, 1, 1]), None),  # done, and nothing to do
        ("gpu_hbm_degrading", each("gpu.ecc.volatile.corrected", [0, 1, 2, 3, 4]), 4),  # one in four seconds, kept up
        ("gpu_hbm_degrading", each("gpu.ecc.volatile.corrected", [0, 1, 1, 1, 2, 2]), None),
        ("gpu_hbm_degrading", each("gpu.remap.banks_exhausted", [0, 1, 1]), 3),
        ("gpu_nvlink_fault", each("gpu_link.up", [1, 0, 0, 0]), 4),
        ("gpu_nvlink_fault", each("gpu_link.up", [1, 0, 1, 0, 1, 0, 0]), None),  # one poll after a boot says nothing
        ("gpu_nvlink_fault", each("gpu_link.up", [0] * 10), None),  # no bridge, and no fault
        ("gpu_nvlink_fault", each("gpu_link.recoveries", [0, 1, 1, 1, 1]), None),
        ("gpu_nvlink_fault", each("gpu_link.recoveries", [0, 1, 2]), 3),
        ("gpu_nvlink_fault", each("gpu_link.recoveries_failed", [0, 1]), 2),
        ("gpu_nvlink_fault", each("gpu_link.crc_errors", [0, 1000, 2000, 3000]), 4),
        ("gpu_nvlink_fault", each("gpu_link.crc_errors", [0, 39, 78, 117, 156]), None),
        ("gpu_nvlink_fault", each("gpu.fabric.status", [0, 999, 999, 999]), 4),
        ("gpu_pcie_degraded", each("gpu.pcie.width", [16, 8, 8], gpu__pcie__width__max=16, **{"gpu.utilization": 0.9}), 3),
        ("gpu_pcie_degraded", each("gpu.pcie.generation", [5, 1, 1, 1, 1], gpu__pcie__generation__max=5, **IDLE), None),
        ("gpu_pcie_degraded", each("gpu.pcie.generation", [5, 4, 4, 4], gpu__pcie__generation__max=5, **BUSY), 4),
        ("gpu_pcie_degraded", each("gpu.pcie.replays", [0, 10, 20, 30]), 4),
        ("gpu_pcie_degraded", each("gpu.pcie.replays", [3, 3, 4, 4, 4]), None),
        ("gpu_thermal_throttle", each("gpu.throttle.hw_thermal", [0, 1, 1]), 3),
        ("gpu_thermal_throttle", each("gpu.throttle.sw_thermal", [0, 1, 0, 1, 0]), None),
        ("gpu_pcie_degraded", each("gpu.pcie.nonfatal_errors", [3, 3, 4]), 3),
        ("gpu_pcie_degraded", each("gpu.pcie.fatal_errors", [0, 1]), 2),
        ("gpu_pcie_degraded", each("gpu.pcie.fatal_errors", [9, 9, 9]), None),
        ("gpu_thermal_throttle", each("gpu.temperature", [80, 90, 91], gpu__temperature__slowdown=90), 3),
        ("gpu_power_cap", each("gpu.throttle.hw_power_brake", [0, 1, 1]), 3),
        ("gpu_power_cap", each("gpu.clock.sm", [1.7e9] * 5, gpu__clock__sm__max=1.98e9, gpu__throttle__sw_power_cap=1, **BUSY), None),
        ("gpu_power_cap", each("gpu.clock.sm", [9e8] * 2, gpu__clock__sm__max=1.98e9, gpu__throttle__sw_power_cap=1, **BUSY), 2),
    ],
)
def test_a_fault_opens_where_it_is_one_and_nowhere_else(fault: str, readings: list[Values], at: int | None) -> None:
    found, says = opened(BY_NAME[fault], readings)
    assert found == at
    assert "?" not in says and ("GPU-1" in says or at is None)


def test_every_gpu_fault_of_the_table_is_tried_here() -> None:
    (mark,) = test_a_fault_opens_where_it_is_one_and_nowhere_else.pytestmark
    tried = {fault for fault, _, _ in mark.args[1]}
    assert tried == {row.fault.name for row in RULES if row.entity == "uuid" and isinstance(row.when, tuple)}


class Rows:
    """A store that answers the watch's questions: a GPU and its node every four seconds, and the event of its loss."""

    def __init__(self, ups: Sequence[int]) -> None:
        self.rows: list[dict[str, Any]] = []
        for number, up in enumerate(ups):
            told = {"node": "a", "ts": NOW + timedelta(seconds=4 * number)}
            gpu = [up if metric.name == "gpu.up" else None for metric in GPU.metrics]
            self.rows.append({"family": "gpu", "device_id": 7, "readings": json.dumps(gpu), **told})
            self.rows.append({"family": "host", "device_id": 1, "readings": json.dumps([None] * len(HOST.metrics)), **told})
        lost = {"kind": "gpu_lost", "layer": "compute", "severity": "critical", "node": "a", "device": "GPU-1"}
        at = NOW + timedelta(seconds=4 * list(ups).index(0))
        self.events = [Event(id="e1", at=at, attrs={"uuid": "GPU-1", "pci": "0000:3b:00.0"}, message="gone", **lost)]

    def query(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if "DISTINCT family" in text:
            return [{"family": "gpu"}, {"family": "host"}]
        if "FROM devices" in text:
            return [{"device_id": 7, "attrs": {"uuid": "GPU-1", "pci": "0000:3b:00.0"}}]
        mine = [row for row in self.rows if row["family"] == parameters.get("family")]
        return [] if "min(ts)" in text else [row for row in mine if parameters["since"] < row["ts"] <= parameters["until"]]

    def read(self, _: type, text: str, parameters: dict[str, Any]) -> list[Event]:
        return [event for event in self.events if parameters["since"] < event.at <= parameters["until"]]


def snapshot(ups: Sequence[int]) -> Snapshot:
    now = NOW + timedelta(seconds=4 * len(ups))
    watched = Watch(Rows(ups), 10.0).look(now, 0.0, fresh=True, news=True)  # type: ignore[arg-type]
    return Snapshot(now=now, detect=Settings().detect, runs=(), watched=watched)


def test_a_lost_gpu_is_one_verdict_that_names_layer_node_and_gpu_and_is_over_when_the_driver_reaches_it_again() -> None:
    gone = snapshot([1, 1, 0, 0])
    (verdict,) = fault_rule.detect(gone, gone.now)
    assert (verdict.fault.name, verdict.fault.layer, verdict.node, verdict.device) == ("gpu_fell_off_bus", Layer.COMPUTE, "a", "GPU-1")
    opening = {"old_state": "", "new_state": "open", "reason": "", "actor": "x", "at": NOW, "finding": "f", "key": verdict.key}
    finding = FindingTransition(
        **opening, detector=verdict.detector, fault=verdict.fault.name, layer="compute", severity="critical", node="a"
    )
    assert fault_rule.clears(finding, gone, gone.now) is None
    back = snapshot([1, 1, 0, 0, 1, 1])
    assert fault_rule.detect(back, back.now) == []
    assert fault_rule.clears(finding, back, back.now) in ("the driver reaches GPU GPU-1 again", "GPU GPU-1 was not lost again")
