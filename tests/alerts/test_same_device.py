"""Faults of one device are one incident, and no lesser one hides a graver one from who is told."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import absorbs, first_transition, home
from pipeline.catalog.faults import (
    GPU_ECC_UNCORRECTABLE,
    GPU_FELL_OFF_BUS,
    GPU_PCIE_DEGRADED,
    LINK_DEGRADED,
    LINK_DOWN,
    LINK_FLAP,
    Fault,
)

T0 = datetime(2026, 12, 1, 12, tzinfo=UTC)
PORT = "mlx5_0:1"


def verdict(fault: Fault, device: str = PORT, node: str = "a", seconds: float = 0.0, run: str = "") -> Verdict:
    return Verdict(
        key=f"fault_rule|{fault.name}|{node}/{device}|{run}",
        detector="fault_rule",
        fault=fault,
        run=run,
        attempt="",
        node=node,
        device=device,
        rank=None,
        onset=T0 + timedelta(seconds=seconds),
        reason="seen",
        confidence=1.0,
    )


def joins(later: Verdict, first: Verdict) -> bool:
    return home(later, [first_transition(first, "i", T0)]) is not None


@pytest.mark.parametrize("lesser", [LINK_FLAP, LINK_DEGRADED])
def test_a_cable_that_is_down_flaps_and_is_slow_is_one_incident_however_long_it_takes(lesser: Fault) -> None:
    assert joins(verdict(lesser, seconds=5), verdict(LINK_DOWN))
    assert joins(verdict(lesser, seconds=3600), verdict(LINK_DOWN))


def test_what_is_as_grave_joins_only_where_it_began_at_about_the_same_time() -> None:
    assert joins(verdict(LINK_DEGRADED, seconds=240), verdict(LINK_FLAP))
    assert not joins(verdict(LINK_DEGRADED, seconds=360), verdict(LINK_FLAP))
    gpu = "GPU-1"
    assert joins(verdict(GPU_ECC_UNCORRECTABLE, gpu, seconds=3), verdict(GPU_FELL_OFF_BUS, gpu))


def test_what_is_graver_is_an_incident_of_its_own() -> None:
    assert not joins(verdict(LINK_DOWN, seconds=5), verdict(LINK_FLAP))
    assert not joins(verdict(GPU_FELL_OFF_BUS, "GPU-1", seconds=5), verdict(GPU_PCIE_DEGRADED, "GPU-1"))


def test_two_cables_two_gpus_two_nodes_two_layers_and_two_runs_stay_two() -> None:
    down = verdict(LINK_DOWN)
    assert not joins(verdict(LINK_FLAP, "mlx5_1:1"), down)
    assert not joins(verdict(LINK_FLAP, node="b"), down)
    assert not joins(verdict(LINK_FLAP, run="r"), down)
    assert not joins(verdict(GPU_PCIE_DEGRADED, PORT), down), "a name that two layers use"
    assert not joins(verdict(GPU_ECC_UNCORRECTABLE, "GPU-2"), verdict(GPU_FELL_OFF_BUS, "GPU-1"))
    assert not joins(verdict(LINK_FLAP, ""), replace(down, device="")), "of a node as a whole nobody knows what has one cause"


def test_what_was_found_first_of_a_device_is_part_of_what_is_graver_but_no_failure_of_a_run_nor_another_device() -> None:
    down, flap = (first_transition(verdict(fault), fault.name, T0) for fault in (LINK_DOWN, LINK_FLAP))
    assert absorbs(down, flap)
    assert not absorbs(flap, down) and not absorbs(down, down)
    assert not absorbs(first_transition(verdict(LINK_FLAP), "a", T0), first_transition(verdict(LINK_DEGRADED), "b", T0)), "as grave"
    for other in ({"device": "mlx5_1:1"}, {"node": "b"}, {"run": "r"}, {"layer": "compute"}, {"attempt": "r-1"}, {"new_state": "resolved"}):
        assert not absorbs(down, replace(flap, **other)), other
    assert not absorbs(replace(down, device=""), replace(flap, device="")), "of a node as a whole nobody knows what has one cause"
