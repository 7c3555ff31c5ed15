"""What others' monitors made of a GPU's errors, through the leader's tick: what opens, what does not, and what ends.

The numbers are those of the lessons: each test has an input of its own for the kind of fault that one tells of.
"""

from datetime import timedelta
from typing import Any

import pytest

from pipeline.catalog import events
from pipeline.catalog.devices import device_id
from pipeline.catalog.faults import BY_NAME
from pipeline.catalog.layers import Severity
from pipeline.catalog.metrics import GPU, GPU_LINK, HOST, Family
from pipeline.queries.node_gpus import node_gpus
from pipeline.records import Event, FindingTransition, IncidentTransition, Request

UUID = "GPU-0a0a0a0a-1111-2222-3333-444444444444"


class Node:
    """A node whose agent reads its GPUs and their links every four seconds, and tells of XIDs."""

    def __init__(self, world: Any) -> None:
        self.world, self.number = world, 0
        self.gpus: dict[str, dict[str, float | None]] = {}
        self.links: dict[str, float] = {}

    def passes(self, times: int = 1, seconds: float = 4.0) -> None:
        for _ in range(times):
            self.world.wait(seconds)
            self._put(HOST, {}, {"load1": 1})
            for uuid, values in self.gpus.items():
                self._put(GPU, {"uuid": uuid}, values)
            for link, up in self.links.items():
                self._put(GPU_LINK, {"uuid": UUID, "link": link}, {"up": up})
            self.world.tick()

    def xid(self, code: int, count: int = 1, message: str = "as logged", **attrs: str) -> None:
        self.number += 1
        about = {"uuid": UUID, "pci": "0000:3b:00.0", **attrs}
        kind = {"kind": events.XID.name, "layer": "compute", "severity": "error", "code": str(code), "node": "node-a", "device": UUID}
        self.world.put(Event(id=f"xid-{self.number}", at=self.world.now, count=count, message=message, attrs=about, **kind))

    def _put(self, family: Family, identity: dict[str, str], values: dict[str, float | None] | dict[str, float]) -> None:
        self.number += 1
        row = {"device_id": device_id(family, {"node": "node-a", **identity}), "node": "node-a"}
        name = {**row, "family": family.name, "name": "x", "attrs": identity, "seen_at": self.world.now}
        self.world.store.insert_rows("devices", [name], token=f"d{self.number}")
        self.world.store.insert_rows(f"{family.name}_raw", [{**row, "ts": self.world.now, **values}], token=f"r{self.number}")


@pytest.fixture
def node(world: Any) -> Node:
    made = Node(world)
    made.passes(2)
    return made


def found(world: Any) -> list[tuple[str, str]]:
    return [(f.fault, f.new_state) for f in world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")]


def incidents(world: Any) -> dict[str, IncidentTransition]:
    return {i.incident: i for i in world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")}


def running(world: Any) -> None:
    world.run()
    for state in ("starting", "running"):
        world.attempt(state)
    world.ingest()
    world.beat()


def test_c01_the_same_xid_a_quarter_of_an_hour_later_is_a_second_event_and_a_second_finding(world: Any) -> None:
    world.now -= timedelta(minutes=40)
    node = Node(world)
    running(world)
    node.passes(2)
    node.xid(31)
    node.passes(20)
    assert found(world) == [("gpu_illegal_access", "open"), ("gpu_illegal_access", "cleared")], "by a quiet time, and nothing was restarted"
    world.wait(900 - 80)
    world.beat()
    node.xid(31)
    node.passes(1)
    assert found(world)[2:] == [("gpu_illegal_access", "open")]
    rows = world.store.query("SELECT at, count FROM events WHERE kind = 'xid' AND code = '31' ORDER BY at", {})
    assert [row["count"] for row in rows] == [1, 1] and rows[1]["at"] - rows[0]["at"] == timedelta(seconds=900)


def test_c03_a_gpu_whose_utilisation_is_not_supported_is_not_called_idle_and_spares_the_others(world: Any, node: Node) -> None:
    gib = 1 << 30
    mig = {"up": 1, "mig_enabled": 1, "utilization": None, "memory_total": 40 * gib, "memory_used": 10 * gib}
    node.gpus = {UUID: mig, "GPU-busy": {"up": 1, "utilization": 0.75, "memory_total": 80 * gib, "memory_used": 8 * gib}}
    node.passes(3)
    (slot,) = node_gpus(world.store, "node-a", world.now - timedelta(minutes=5), world.now, width=86_400)
    assert (slot.busiest, slot.idlest, slot.fullest) == (0.75, 0.75, 0.25)
    del node.gpus["GPU-busy"]
    after = world.now
    node.passes(3)
    (slot,) = node_gpus(world.store, "node-a", after, world.now, width=86_400)
    assert (slot.busiest, slot.idlest, slot.fullest) == (None, None, 0.25), "nobody knows, which is not 0 %"


@pytest.mark.parametrize("polls", [1, 2])
def test_c10_links_that_are_down_for_a_poll_after_each_planned_boot_are_no_fault(world: Any, node: Node, polls: int) -> None:
    for _boot in range(3):
        node.links = {str(n): 1.0 for n in range(18)}
        node.passes(4)
        node.links = dict.fromkeys(node.links, 0.0)
        node.passes(polls)
    node.links = dict.fromkeys(node.links, 1.0)
    node.passes(3)
    assert not found(world)


def test_c10_a_link_that_stays_down_is_one_fault_and_pages_nobody_while_its_node_is_in_maintenance(world: Any, node: Node) -> None:
    until = world.now + timedelta(minutes=30)
    asked = {"intent": "m", "kind": "maintain", "target": "node=node-a", "actor": "ann", "reason": "firmware"}
    world.put(Request(at=world.now, ends_at=until, **asked))
    node.links = {"0": 1.0, "1": 1.0}
    node.passes(3)
    node.links["1"] = 0.0
    node.passes(5)
    assert found(world) == [("gpu_nvlink_fault", "open")]
    sent = world.store.query("SELECT receiver, event, new_state, reason FROM notifications ORDER BY at", {})
    assert sent and all(row["new_state"] == "held" and "in maintenance" in row["reason"] for row in sent), sent


def test_c11_clean_ups_after_an_abort_are_no_fault_however_often_they_come(world: Any, node: Node) -> None:
    running(world)
    for _ in range(5):
        node.xid(45)
        node.passes(2)
    assert not found(world)


@pytest.mark.parametrize(
    ("code", "fault", "severity", "done", "never"),
    [
        (64, "gpu_ecc_uncorrectable", Severity.CRITICAL, ("exclude node", "RMA"), ()),
        (63, "gpu_row_remap_pending", Severity.WARNING, ("reset GPU when idle",), ("RMA", "exclude", "replace")),
    ],
)
def test_c12_a_remapping_that_failed_is_hardware_and_one_that_waits_is_a_reset(
    world: Any, node: Node, code: int, fault: str, severity: Severity, done: tuple[str, ...], never: tuple[str, ...]
) -> None:
    node.xid(code)
    node.passes(1)
    assert found(world) == [(fault, "open")]
    told = BY_NAME[fault]
    assert told.severity is severity
    assert all(word in told.advice for word in done) and not any(word in told.advice for word in never)


def test_c13_hundreds_of_thousands_of_one_xid_in_a_few_texts_are_a_row_a_text_and_one_incident(world: Any, node: Node) -> None:
    running(world)
    for n, copies in enumerate((250_000, 120_000, 3)):
        node.xid(13, count=copies, message=f"Graphics SM Warp Exception on (GPC {n}, TPC 0, SM 0)")
    node.passes(3)
    assert len(incidents(world)) == 1 and found(world) == [("gpu_illegal_access", "open")]
    rows = world.store.query("SELECT message, sum(count) AS n FROM events WHERE kind = 'xid' GROUP BY message ORDER BY n", {})
    assert [row["n"] for row in rows] == [3, 120_000, 250_000]


def test_c18_nothing_stays_unhealthy_for_ever_and_what_comes_later_begins_at_the_first_step(world: Any, node: Node) -> None:
    node.gpus = {UUID: {"up": 1, "remap_pending": 0}}
    node.passes(2)
    for _ in range(2):
        node.gpus[UUID]["remap_pending"] = 1
        node.passes(1)
        assert found(world)[-1:] != [("gpu_row_remap_pending", "open")], "one reading may lie, the second time as the first"
        node.passes(1)
        assert found(world)[-1] == ("gpu_row_remap_pending", "open")
        node.gpus[UUID]["remap_pending"] = 0
        node.passes(2)
        assert found(world)[-1] == ("gpu_row_remap_pending", "cleared")
        node.passes(17)
        assert {one.new_state for one in incidents(world).values()} == {"resolved"}
    assert len(incidents(world)) == 2
