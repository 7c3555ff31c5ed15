"""What schedulers say, as faults: readings and events made by hand, through the watch and the rules, to verdicts and their end."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from alerts.detectors import fault_rule
from alerts.detectors.verdict import Verdict
from alerts.snapshot import Snapshot
from alerts.watch import Watch
from pipeline.catalog.metrics import CSI_DRIVER, HOST, SCHED_JOB, SCHED_NODE, Family
from pipeline.records import Event, FindingTransition
from pipeline.settings import Settings

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


class Rows:
    """A store that holds what agents sent, and the watch over it."""

    def __init__(self) -> None:
        self.readings: list[dict[str, Any]] = []
        self.devices: dict[int, dict[str, str]] = {}
        self.events: list[Event] = []
        self.watch = Watch(self, 10.0)  # type: ignore[arg-type]

    def query(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if "DISTINCT family" in text:
            return [{"family": name} for name in {r["family"] for r in self.readings}]
        if "FROM devices" in text:
            return [{"device_id": i, "attrs": self.devices[i]} for i in parameters["ids"] if i in self.devices]
        if "min(ts)" in text:
            return []
        mine = [r for r in self.readings if r["family"] == parameters["family"]]
        return [r for r in mine if parameters["since"] < r["ts"] <= parameters["until"]]

    def read(self, _: type, text: str, parameters: dict[str, Any]) -> list[Event]:
        return [e for e in self.events if e.kind in parameters["kinds"] and parameters["since"] < e.at <= parameters["until"]]

    def reading(self, seconds: float, family: Family, node: str, device: dict[str, str], **values: float) -> None:
        number = hash((family.name, node, *device.values())) & 0xFFFF
        told = json.dumps([values.get(family.column(metric)) for metric in family.metrics])
        self.readings.append({"family": family.name, "device_id": number, "node": node, "ts": at(seconds), "readings": told})
        self.devices[number] = device

    def node(self, seconds: float, ready: float) -> None:
        self.reading(seconds, SCHED_NODE, "gpu2", {"scheduler": "slurm"}, ready=ready)

    def job(self, seconds: float, waiting: float) -> None:
        self.reading(seconds, SCHED_JOB, "watcher", {"scheduler": "slurm", "job": "42"}, waiting=waiting)

    def host(self, *seconds: float) -> None:
        for one in seconds:
            self.reading(one, HOST, "gpu2", {})

    def event(self, seconds: float, kind: str, code: str, message: str = "", **attrs: str) -> None:
        what = {"layer": "scheduler", "severity": "warning", "node": "gpu2", "code": code, "message": message}
        self.events.append(Event(id=f"e{len(self.events)}", at=at(seconds), kind=kind, attrs={"scheduler": "kubernetes", **attrs}, **what))

    def verdicts(self, seconds: float) -> list[Verdict]:
        return fault_rule.detect(self.snapshot(seconds), at(seconds))

    def cleared(self, seconds: float, verdict: Verdict) -> str | None:
        told = {"old_state": "", "new_state": "open", "reason": "", "actor": "leader", "at": NOW, "finding": "f", "key": verdict.key}
        more = {"detector": "fault_rule", "fault": verdict.fault.name, "layer": verdict.fault.layer, "severity": verdict.fault.severity}
        return fault_rule.clears(FindingTransition(**told, **more, node=verdict.node), self.snapshot(seconds), at(seconds))

    def snapshot(self, seconds: float) -> Snapshot:
        seen = self.watch.look(at(seconds), seconds, fresh=True, news=True)
        return Snapshot(now=at(seconds), detect=Settings().detect, watched=seen)


def faults(found: list[Verdict]) -> list[tuple[str, str, str]]:
    return [(v.fault.name, v.node, v.device) for v in found]


def test_a_node_that_turns_unfit_is_found_after_two_looks_and_over_when_it_is_fit_again() -> None:
    rows = Rows()
    for seconds, ready in ((0, 1), (5, 0)):
        rows.node(seconds, ready)
    assert rows.verdicts(6) == [], "one answer is no verdict"
    rows.node(10, 0)
    (found,) = rows.verdicts(11)
    assert faults([found]) == [("node_not_ready", "gpu2", "")] and found.reason == "slurm holds the node for unfit"
    for seconds in (15, 20):
        rows.node(seconds, 1)
    assert rows.cleared(21, found) == "slurm holds the node for fit again"


def test_a_node_that_was_unfit_before_anybody_looked_is_no_fault() -> None:
    rows = Rows()
    for seconds in (0, 5, 10, 15):
        rows.node(seconds, 0)
    assert rows.verdicts(16) == []


def test_a_job_that_waits_for_more_than_a_minute_is_found_until_it_has_its_nodes() -> None:
    rows = Rows()
    rows.job(0, 59)
    assert rows.verdicts(1) == []
    rows.job(5, 64)
    (found,) = rows.verdicts(6)
    assert faults([found]) == [("pending_capacity", "watcher", "42")] and found.reason == "job 42 has been waiting for nodes for 64 s"
    rows.job(10, 0)
    assert rows.cleared(11, found) == "job 42 has its nodes"


def test_a_place_that_was_taken_is_found_at_once_and_over_some_time_later() -> None:
    rows = Rows()
    rows.event(0, "place_lost", "preempted", "a higher priority", job="train/pod-1")
    (found,) = rows.verdicts(1)
    assert faults([found]) == [("preempted_or_evicted", "gpu2", "train/pod-1")]
    assert found.reason == "kubernetes took the place of train/pod-1: a higher priority"
    rows.host(10, 20)
    assert rows.cleared(21, found) is None
    rows.host(30)
    assert rows.cleared(31, found) == "nothing more was taken from train/pod-1"


def test_on_a_node_without_an_agent_the_schedulers_own_readings_say_that_nothing_more_happened() -> None:
    rows = Rows()
    rows.event(0, "place_lost", "evicted", job="train/pod-1")
    rows.event(0, "oom_kill", "cgroup")
    found = {v.fault.name: v for v in rows.verdicts(1)}
    for seconds in (5, 10, 15, 20, 25, 30):
        rows.node(seconds, 1)
    over = {name: rows.cleared(31, verdict) for name, verdict in found.items()}
    assert over == {"preempted_or_evicted": "nothing more was taken from train/pod-1", "host_oom_kill": None}


def test_a_volume_that_cannot_be_attached_is_found_at_once_and_one_that_cannot_be_mounted_the_second_time() -> None:
    rows = Rows()
    rows.event(0, "volume_attach_failed", "FailedAttachVolume", "Multi-Attach error", object="train/a")
    rows.event(0, "volume_attach_failed", "FailedMount", "not found", object="train/b")
    assert faults(rows.verdicts(1)) == [("volume_attach_failure", "gpu2", "train/a")]
    rows.event(30, "volume_attach_failed", "FailedMount", "not found", object="train/b")
    rows.event(31, "claim_unbound", "FailedBinding", "no class", object="train/c")
    assert {device for _, _, device in faults(rows.verdicts(32))} == {"train/a", "train/b"}
    rows.event(60, "claim_unbound", "FailedBinding", "no class", object="train/c")
    found = {v.device: v.reason for v in rows.verdicts(61)}
    assert found["train/c"] == "nothing is found or made for the claim train/c: no class"


def test_a_driver_of_volumes_that_a_node_loses_is_a_fault_of_the_node_and_ends_when_it_is_back() -> None:
    rows, device = Rows(), {"scheduler": "kubernetes", "driver": "nfs.csi"}

    def driver(registered: int, ready: int, *seconds: int) -> None:
        for second in seconds:
            rows.reading(second, CSI_DRIVER, "gpu2", device, registered=registered, ready=ready)
            rows.host(second)

    driver(1, 1, 0)
    driver(1, 0, 5, 10)
    assert rows.verdicts(10) == [], "an update takes some seconds"
    driver(0, 0, 15)
    (verdict,) = rows.verdicts(15)
    assert faults([verdict]) == [("volume_attach_failure", "gpu2", "nfs.csi")]
    assert verdict.reason == "the driver nfs.csi is not ready: volumes of its kind cannot be attached here"
    driver(1, 1, 20)
    assert rows.cleared(20, verdict) is None, "it may go again"
    driver(1, 1, 25)
    assert rows.cleared(25, verdict) == "the driver nfs.csi is there again"


def test_a_driver_that_never_was_ready_since_anyone_looked_pages_nobody() -> None:
    rows = Rows()
    for second in (0, 10, 20, 30):
        rows.reading(second, CSI_DRIVER, "gpu2", {"scheduler": "kubernetes", "driver": "nfs.csi"}, registered=0, ready=0)
        rows.host(second)
    assert rows.verdicts(30) == []
