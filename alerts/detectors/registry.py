"""Every detector, once. A detector is a file with NAME, `detect` and `clears`; a test fails for what one lacks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from alerts.detectors import fault_rule, heartbeat_lost, node_left, rank_exit, step_stall
from alerts.detectors.verdict import Verdict
from alerts.snapshot import Snapshot
from pipeline.catalog.faults import (
    COLLECTIVE_HANG,
    HOST_DOWN,
    LAUNCHER_LOST,
    NODE_LEFT,
    RANK_CRASH,
    RANK_STOPPED,
    STARTUP_FAILURE,
    TELEMETRY_LOST,
    Fault,
)
from pipeline.catalog.rules import RULES
from pipeline.records import FindingTransition


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector and the faults that it may name. `once`: of a key it opens at most one finding ever."""

    name: str
    faults: tuple[Fault, ...]
    detect: Callable[[Snapshot, datetime], list[Verdict]]
    clears: Callable[[FindingTransition, Snapshot, datetime], str | None]
    once: bool = False


DETECTORS: tuple[Detector, ...] = (
    Detector(rank_exit.NAME, (RANK_CRASH, STARTUP_FAILURE), rank_exit.detect, rank_exit.clears, once=True),
    Detector(step_stall.NAME, (RANK_STOPPED, COLLECTIVE_HANG, RANK_CRASH), step_stall.detect, step_stall.clears),
    Detector(heartbeat_lost.NAME, (TELEMETRY_LOST, HOST_DOWN, LAUNCHER_LOST), heartbeat_lost.detect, heartbeat_lost.clears),
    Detector(node_left.NAME, (NODE_LEFT,), node_left.detect, node_left.clears),
    Detector(fault_rule.NAME, tuple(dict.fromkeys(rule.fault for rule in RULES)), fault_rule.detect, fault_rule.clears),
)
BY_NAME: dict[str, Detector] = {d.name: d for d in DETECTORS}
