"""Faults of the network through the leader's tick: ports and interfaces as agents tell of them, against the real store."""

from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST, NETDEV, RDMA_PORT, Family
from pipeline.records import FindingTransition, IncidentTransition

Values = dict[str, float | None]
PORT: Values = {"state": 4, "phys_state": 5, "rate": 50e9, "rate_best": 50e9, "link_downs": 14, "symbol_errors": 0}
INTERFACE: Values = {"carrier": 1, "speed": 25e9, "speed_best": 25e9, "carrier_changes": 3}


class Network:
    """A node with an InfiniBand port, a RoCE port on eth2, and eth0; its agent sends a pass every ten seconds."""

    def __init__(self, world: Any) -> None:
        self.world, self.number = world, 0
        self.named: set[int] = set()
        self.ports: dict[str, Values] = {"mlx5_0:1": dict(PORT), "mlx5_1:1": dict(PORT)}
        self.interfaces: dict[str, Values] = {"eth0": dict(INTERFACE), "eth2": dict(INTERFACE)}
        self.of_port = {"mlx5_1:1": {"netdev": "eth2"}}
        self.of_interface = {"eth2": {"port": "mlx5_1:1"}}

    def send(self) -> None:
        self._put(HOST, {"": {"load1": 1}}, {})
        self._put(RDMA_PORT, self.ports, self.of_port)
        self._put(NETDEV, self.interfaces, self.of_interface)

    def passes(self, times: int = 1, seconds: float = 10) -> None:
        for _ in range(times):
            self.world.wait(seconds)
            self.send()
            self.world.tick()

    def _put(self, family: Family, devices: Mapping[str, Values], more: Mapping[str, dict[str, str]]) -> None:
        self.number += 1
        store, now, key = self.world.store, self.world.now, family.identity[-1]
        rows, names = [], []
        for name, values in devices.items():
            identity = {"node": "node-a"} | ({key: name} if name else {})
            row = {"device_id": device_id(family, identity), "node": "node-a"}
            rows.append({**row, "ts": now, **dict.fromkeys(c for each in devices.values() for c in each), **values})
            attrs = {k: v for k, v in identity.items() if k != "node"} | more.get(name, {})
            names.append({**row, "family": family.name, "name": "x", "attrs": attrs, "seen_at": now})
        fresh = [name for name in names if name["device_id"] not in self.named]
        self.named |= {name["device_id"] for name in fresh}
        if fresh:
            store.insert_rows("devices", fresh, token=f"d{self.number}")
        store.insert_rows(f"{family.name}_raw", rows, token=f"r{self.number}")


@pytest.fixture
def net(world: Any) -> Network:
    return Network(world)


def found(world: Any) -> list[tuple[str, str, str]]:
    rows = world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")
    return [(f.fault, f.device, f.new_state) for f in rows]


def running(world: Any) -> None:
    world.run()
    world.attempt("starting")
    world.attempt("running")
    world.steps(60)
    world.ingest()
    world.beat()


def test_a_port_that_goes_down_is_one_incident_of_its_node_and_port_and_over_when_it_is_active_again(world: Any, net: Network) -> None:
    net.passes(3)
    net.ports["mlx5_0:1"] |= {"state": 1, "phys_state": 2, "rate": 312.5e6}
    net.passes(1)
    assert not found(world), "one reading may lie"
    net.passes(3)
    assert found(world) == [("link_down", "mlx5_0:1", "open")]
    (incident,) = world.store.read(IncidentTransition, "SELECT * FROM incidents")
    assert (incident.layer, incident.node, incident.device) == ("communication", "node-a", "mlx5_0:1")
    net.ports["mlx5_0:1"] = dict(PORT)
    net.passes(2)
    assert found(world)[-1] == ("link_down", "mlx5_0:1", "cleared")


def test_a_port_that_was_never_up_and_one_of_a_container_are_no_fault(world: Any, net: Network) -> None:
    net.ports["mlx5_2:1"] = {**PORT, "state": 1}
    net.ports["mlx5_7:1"] = dict(PORT)
    net.of_port["mlx5_7:1"] = {"function": "virtual"}
    net.interfaces["eth9"] = {**INTERFACE, "carrier": 0, "speed": None}
    net.passes(3)
    net.ports["mlx5_7:1"]["state"] = 1
    net.passes(3)
    assert not found(world)


def test_a_roce_port_that_loses_its_carrier_is_told_once_and_an_interface_of_its_own_by_its_name(world: Any, net: Network) -> None:
    net.passes(2)
    net.ports["mlx5_1:1"]["state"] = 1
    for name in ("eth0", "eth2"):
        net.interfaces[name] |= {"carrier": 0, "speed": None}
    net.passes(2)
    assert sorted(found(world)) == [("link_down", "eth0", "open"), ("link_down", "mlx5_1:1", "open")]


def test_an_interface_that_is_switched_off_is_no_fault(world: Any, net: Network) -> None:
    net.passes(2)
    net.interfaces["eth0"] |= {"carrier": None, "speed": None}
    net.passes(4)
    assert not found(world)


def test_a_link_that_was_lost_for_a_moment_matters_where_a_run_is(world: Any, net: Network) -> None:
    net.passes(2)
    net.ports["mlx5_0:1"]["link_downs"] = 15
    net.passes(2)
    assert not found(world)
    running(world)
    net.ports["mlx5_0:1"]["link_downs"] = 16
    net.passes(1)
    assert ("link_down", "mlx5_0:1", "open") in found(world)


def test_fourteen_since_boot_are_nothing_and_three_more_in_ten_minutes_are_a_flap_until_it_is_quiet(world: Any, net: Network) -> None:
    net.passes(3)
    for downs in (15, 16):
        net.ports["mlx5_0:1"]["link_downs"] = downs
        net.passes(2)
    assert not found(world)
    net.ports["mlx5_0:1"]["link_downs"] = 17
    net.passes(1)
    assert found(world) == [("link_flap", "mlx5_0:1", "open")]
    net.passes(2, 290)
    assert found(world) == [("link_flap", "mlx5_0:1", "open")], "the last one was 580 s ago"
    net.passes(3)
    assert found(world)[-1] == ("link_flap", "mlx5_0:1", "cleared")


def test_ten_in_an_hour_are_a_flap_also_for_a_leader_that_began_in_between(world: Any, net: Network) -> None:
    net.passes(1)
    for downs in (16, 18, 20, 22, 24, 26):  # two every 620 s: never three in ten minutes
        net.passes(1, 310)
        net.ports["mlx5_0:1"]["link_downs"] = downs
        net.passes(1, 310)
        assert found(world) == ([("link_flap", "mlx5_0:1", "open")] if downs >= 24 else []), "ten more than 14"
        world.restart_jobs()


def test_an_interface_that_comes_and_goes_is_told_of_its_port(world: Any, net: Network) -> None:
    net.passes(2)
    for changes in (5, 7, 9):
        net.interfaces["eth2"]["carrier_changes"] = net.interfaces["eth0"]["carrier_changes"] = changes
        net.passes(1)
    assert sorted(found(world)) == [("link_flap", "eth0", "open"), ("link_flap", "mlx5_1:1", "open")]


def test_a_link_on_one_lane_of_four_is_degraded_and_one_that_is_down_is_not(world: Any, net: Network) -> None:
    net.passes(2)
    net.ports["mlx5_0:1"]["rate"] = 12.5e9
    net.ports["mlx5_1:1"] |= {"rate": 312.5e6, "state": 1}
    net.passes(2)
    assert sorted(found(world)) == [("link_degraded", "mlx5_0:1", "open"), ("link_down", "mlx5_1:1", "open")]
    (row,) = [f for f in world.store.read(FindingTransition, "SELECT * FROM findings") if f.fault == "link_degraded"]
    assert row.reason == "mlx5_0:1 runs at 12.5 GB/s, and has run at 50 GB/s"
    net.ports["mlx5_0:1"]["rate"] = 50e9
    net.passes(2)
    assert found(world)[-1] == ("link_degraded", "mlx5_0:1", "cleared")


@pytest.mark.parametrize(
    ("counter", "grows", "faulty"),
    [("symbol_errors", 8, True), ("symbol_errors", 1, False), ("link_recoveries", 1, True), ("integrity_errors", 1, True)],
)
def test_errors_of_a_link_degrade_it_where_they_are_more_than_the_specification_allows(
    world: Any, net: Network, counter: str, grows: int, faulty: bool
) -> None:
    net.ports["mlx5_0:1"][counter] = 0
    net.passes(2)
    for n in range(1, 4):
        net.ports["mlx5_0:1"][counter] = n * grows
        net.passes(1)
    assert found(world) == ([("link_degraded", "mlx5_0:1", "open")] if faulty else [])


def test_a_counter_at_its_top_opens_nothing_and_clears_nothing(world: Any, net: Network) -> None:
    net.passes(2)
    net.ports["mlx5_0:1"]["symbol_errors"] = 65535
    net.passes(1)
    assert found(world) == [("link_degraded", "mlx5_0:1", "open")]
    net.passes(3, 290)
    assert found(world) == [("link_degraded", "mlx5_0:1", "open")], "it stands there, and nobody knows what goes on"
    net.ports["mlx5_0:1"]["symbol_errors"] = 0
    net.passes(4)
    assert found(world)[-1] == ("link_degraded", "mlx5_0:1", "cleared")


@pytest.mark.parametrize(
    ("port", "interface", "fault", "says"),
    [
        ({"ack_timeouts": 50}, {}, "rdma_retransmits", "mlx5_1:1 waits in vain for answers, 5 a second"),
        (
            {"sequence_errors": 500, "sent_packets": 1_000_000},
            {},
            "rdma_retransmits",
            "0.05% of the packets that mlx5_1:1 sends are lost and sent again",
        ),
        ({"rnr_naks": 2000}, {}, "rdma_retransmits", "the receivers that mlx5_1:1 sends to are not ready, 200 a second"),
        (
            {"ecn_marked": 100_000, "received_packets": 1_000_000},
            {},
            "congestion",
            "10% of the packets that mlx5_1:1 receives have met congestion",
        ),
        ({}, {"pauses_received_time": 2.5}, "congestion", "eth2 was kept from sending 25% of the time"),
        ({"send_wait": 10**9}, {}, "", ""),
        ({"out_of_sequence": 10**6}, {}, "", ""),
        ({"notices_sent": 10**6}, {}, "", ""),
        ({"ecn_marked": 1000, "received_packets": 1_000_000}, {}, "", ""),
    ],
)
def test_what_slows_a_run_is_told_of_the_port_and_only_where_a_run_is(
    world: Any, net: Network, port: dict[str, float], interface: dict[str, float], fault: str, says: str
) -> None:
    def go(times: int) -> None:
        for _ in range(times):
            for name, step in port.items():
                net.ports["mlx5_1:1"][name] = (net.ports["mlx5_1:1"].get(name) or 0) + step
            for name, step in interface.items():
                net.interfaces["eth2"][name] = (net.interfaces["eth2"].get(name) or 0) + step
            net.passes(1)

    go(5)
    assert not found(world)
    running(world)
    go(3)
    mine = [one for one in found(world) if one[0] in ("rdma_retransmits", "congestion")]
    assert mine == ([(fault, "mlx5_1:1", "open")] if fault else [])
    assert [f.reason for f in world.store.read(FindingTransition, "SELECT * FROM findings") if f.fault == fault] == [says] * bool(fault)


def test_a_new_leader_does_not_call_a_port_down_that_was_down_before_it_was_first_seen(world: Any, net: Network) -> None:
    net.ports["mlx5_0:1"]["state"] = 1
    net.send()
    world.wait(300)
    net.passes(3)
    world.restart_jobs()
    net.passes(3)
    assert not found(world)


def test_a_port_that_is_down_flaps_and_is_in_error_is_one_incident_and_another_port_is_another(world: Any, net: Network) -> None:
    """The RoCE port's own interface is the same cable: what it counts is told of the port."""
    net.passes(3)
    net.ports["mlx5_1:1"] |= {"state": 1, "phys_state": 2, "link_downs": 17}
    net.interfaces["eth2"] |= {"carrier": 0, "speed": None, "carrier_changes": 9}
    net.ports["mlx5_0:1"] |= {"state": 1, "phys_state": 2}
    net.passes(2)
    told = {(fault, device) for fault, device, _ in found(world)}
    assert told == {("link_down", "mlx5_1:1"), ("link_flap", "mlx5_1:1"), ("link_down", "mlx5_0:1")}
    last = {f.finding: f for f in world.store.read(FindingTransition, "SELECT * FROM findings ORDER BY at")}
    rows = world.store.read(IncidentTransition, "SELECT * FROM incidents ORDER BY at")
    left = {i.device: i for i in {i.incident: i for i in rows}.values() if i.new_state == "open"}
    assert {device: i.fault for device, i in left.items()} == {"mlx5_1:1": "link_down", "mlx5_0:1": "link_down"}
    assert {f.incident for f in last.values() if f.device == "mlx5_1:1"} == {left["mlx5_1:1"].incident}
    (flap,) = {i.incident: i for i in rows if i.fault == "link_flap"}.values()
    assert (flap.new_state, flap.merged_into) == ("resolved", left["mlx5_1:1"].incident), (
        "it was found first, and is part of what is graver"
    )
