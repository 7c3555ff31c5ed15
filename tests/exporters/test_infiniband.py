"""RDMA devices of six makers from small trees written after the kernel's ABI documentation; and trees in which much is wrong."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.collector import Keeps, Reading, Site
from exporters.encode import accept
from exporters.network.rdma import COUNTERS, HARDWARE, RdmaCollector
from exporters.sources.network import infiniband
from pipeline.catalog.metrics import BY_NAME, RDMA_PORT

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
EVERYTHING = frozenset(name for names in HARDWARE.values() for name in names)


def tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files below sys/class/infiniband of `root`."""
    for name, content in files.items():
        path = root / "sys/class/infiniband" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
    return root / "sys"


def port(name: str, **more: str) -> dict[str, str | bytes]:
    """A port that is well; `more` are further files, folders parted by two underscores."""
    usual = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)", "link_layer": "InfiniBand"}
    return {f"{name}/ports/1/{key.replace('__', '/')}": word for key, word in (usual | more).items()}


def collected(sys: Path, kept: Mapping[str, int] | None = None) -> dict[str, Reading]:
    return {r.identity["port"]: r for r in RdmaCollector(Site("n", sys=sys, kept=kept or {})).collect(AT)}


def values(reading: Reading) -> dict[str, float | int]:
    told = {name.removeprefix("rdma_port."): value for name, value in reading.values.items() if value is not None}
    assert told.pop("present") == 1
    return told


def test_no_rdma_device_gives_nothing_and_is_no_error(tmp_path: Path) -> None:
    assert list(infiniband.devices(tmp_path, EVERYTHING)) == []
    assert infiniband.ports_of_netdevs(tmp_path) == {}
    assert collected(tmp_path) == {}


def test_data_is_counted_in_words_of_four_bytes(tmp_path: Path) -> None:
    sys = tree(tmp_path, port("mlx5_0", counters__port_xmit_data="1000", counters__port_rcv_data="250", counters__port_xmit_packets="10"))
    before = values(collected(sys)["mlx5_0:1"])
    tree(tmp_path, {"mlx5_0/ports/1/counters/port_xmit_data": "2000"})
    after = values(collected(sys)["mlx5_0:1"])
    assert (before["sent"], before["received"], before["sent.packets"]) == (4000, 1000, 10)
    assert after["sent"] - before["sent"] == 4000, "C20: 1,000 words more are 4,000 bytes"


@pytest.mark.parametrize(
    ("words", "bytes_a_second"),
    [
        ("100 Gb/sec (4X EDR)", 12.5e9),
        ("2.5 Gb/sec (1X SDR)", 312.5e6),
        ("400 Gb/sec (4X NDR)", 50e9),
        ("0 Gb/sec", None),
        ("0 GB/sec", None),
        ("", None),
        ("-1 Gb/sec (4X EDR)", None),
        ("99999999999999999999999 Gb/sec", None),
    ],
)
def test_a_rate_is_bytes_a_second_and_none_where_it_is_none(words: str, bytes_a_second: float | None) -> None:
    assert infiniband.rate(words) == bytes_a_second


# C19
def test_one_bad_file_costs_its_own_value_and_nothing_else(tmp_path: Path) -> None:
    sys = tree(
        tmp_path,
        {
            **port("a", counters__symbol_error="N/A (no PMA)", counters__link_downed="3", rate="0 GB/sec"),
            **port("b", counters__symbol_error="2", counters__link_downed="99999999999999999999999", phys_state="LinkUp"),
            **port("c", state="x" * 9000, counters__port_rcv_errors="-1", counters__VL15_dropped="1"),
        },
    )
    (sys / "class/infiniband/b/ports/1/counters/port_rcv_errors").mkdir()  # reading it fails with EISDIR, as another does with EINVAL
    found = {name: values(reading) for name, reading in collected(sys).items()}
    assert "symbol_errors" not in found["a:1"] and found["a:1"]["link_downs"] == 3 and "rate" not in found["a:1"]
    assert found["b:1"] == {"state": 4, "rate": 12.5e9, "rate.best": 12.5e9, "symbol_errors": 2}
    assert found["c:1"] == {"phys_state": 5, "rate": 12.5e9, "vl15_dropped": 1}


def test_a_counter_that_the_kernel_refuses_is_absent(tmp_path: Path) -> None:
    # mem of this very process at address 0 answers EIO: a file that opens, and whose reading fails.
    sys = tree(tmp_path, port("mlx5_0", counters__symbol_error="7"))
    os.symlink("/proc/self/mem", sys / "class/infiniband/mlx5_0/ports/1/counters/link_downed")
    assert {"symbol_errors": 7}.items() <= values(collected(sys)["mlx5_0:1"]).items()
    assert collected(sys)["mlx5_0:1"].values["rdma_port.link_downs"] is None


MLX4 = port("mlx4_0", counters__link_downed="1", hw_counters__sq_num_to="4", hw_counters__rq_num_oos="5", hw_counters__sq_num_oos="6")
HFI1 = port("hfi1_0", counters__port_xmit_wait="9", hw_counters__RxPktErrors="1", hw_counters__TxFlitVL0="2")
BNXT = port("bnxt_re0", hw_counters__to_retransmits="1", hw_counters__rx_ecn_marked_pkts="2", hw_counters__tx_cnp_pkts="3")
EFA = port("rdmap0s6", hw_counters__rx_bytes="4096", hw_counters__retrans_timeout_events="2", hw_counters__rx_drops="1", rate="100 Gb/sec")
IRDMA = port("irdma0", hw_counters__cnpSent="1", hw_counters__RxECNMrkd="2", hw_counters__tcpRetransSegs="3", hw_counters__cnpHandled="4")
OLD_IRDMA = {**port("irdma1"), "irdma1/hw_counters/cnpIgnored": "8"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MLX4, {"link_downs": 1, "ack_timeouts": 4, "out_of_sequence": 5, "sequence_errors": 6}),
        (HFI1, {"send_wait": 9}),
        (BNXT, {"ack_timeouts": 1, "ecn_marked": 2, "notices.sent": 3}),
        (EFA, {"received": 4096, "ack_timeouts": 2, "drops": 1}),
        (IRDMA, {"notices.sent": 1, "ecn_marked": 2, "retransmits": 3, "notices.handled": 4}),
        (OLD_IRDMA, {"notices.ignored": 8}),
    ],
    ids=["mlx4", "hfi1", "bnxt", "efa", "irdma", "irdma with counters of its device"],
)
def test_every_maker_is_read_alike_and_unknown_counters_do_no_harm(
    tmp_path: Path, files: dict[str, str | bytes], expected: dict[str, int]
) -> None:
    (reading,) = collected(tree(tmp_path, files)).values()
    link = {"state": 4, "phys_state": 5, "rate": 12.5e9, "rate.best": 12.5e9}
    assert values(reading) == link | expected
    assert set(reading.values) == {metric.name for metric in RDMA_PORT.metrics}


def test_counters_of_a_device_with_two_ports_are_no_ports_own(tmp_path: Path) -> None:
    two = {"d/ports/1/state": "4: ACTIVE", "d/ports/2/state": "1: DOWN", "d/hw_counters/cnpSent": "3"}
    found = collected(tree(tmp_path, two))
    assert {name: values(reading) for name, reading in found.items()} == {"d:1": {"state": 4}, "d:2": {"state": 1}}


def test_a_port_is_named_with_the_address_that_can_be_routed_and_its_interface(tmp_path: Path) -> None:
    gids = [
        "fe80:0000:0000:0000:0000:0000:0000:0001",
        "",
        "0000:0000:0000:0000:0000:ffff:0a00:0001",
        "0000:0000:0000:0000:0000:ffff:0a00:0001",
    ]
    table = {f"mlx5_0/ports/1/gids/{n}": gid for n, gid in enumerate(gids)}
    table |= {f"mlx5_0/ports/1/gid_attrs/types/{n}": kind for n, kind in enumerate(["IB/RoCE v1", "", "IB/RoCE v1", "RoCE v2"])}
    sys = tree(tmp_path, {**port("mlx5_0"), **table, "mlx5_0/ports/1/gid_attrs/ndevs/0": "eth7"})
    assert collected(sys)["mlx5_0:1"].attributes == {"link_layer": "InfiniBand", "netdev": "eth7", "gid": gids[3]}
    assert infiniband.ports_of_netdevs(sys) == {"eth7": "mlx5_0:1"}


def test_ip_over_infiniband_lies_on_the_port_of_the_same_number(tmp_path: Path) -> None:
    net = {f"mlx5_0/device/net/ib{n}/dev_port": str(n) for n in range(2)}
    sys = tree(tmp_path, {**port("mlx5_0"), "mlx5_0/ports/2/state": "4: ACTIVE", **net})
    assert infiniband.ports_of_netdevs(sys) == {"ib0": "mlx5_0:1", "ib1": "mlx5_0:2"}


def test_a_virtual_function_is_called_so(tmp_path: Path) -> None:
    sys = tree(tmp_path, {**port("mlx5_0"), "mlx5_0/device/physfn/vendor": "0x15b3"})
    assert collected(sys)["mlx5_0:1"].attributes["function"] == "virtual"


def test_the_best_rate_is_that_of_a_link_that_was_up_and_outlives_the_agent(tmp_path: Path) -> None:
    sys = tree(tmp_path, port("mlx5_0", rate="200 Gb/sec (4X HDR)", state="1: DOWN"))
    collector = RdmaCollector(Site("n", sys=sys))
    assert isinstance(collector, Keeps)

    def best() -> float | int | None:
        return next(iter(collector.collect(AT))).values["rdma_port.rate.best"]

    assert best() is None and collector.kept() == {}
    tree(tmp_path, {"mlx5_0/ports/1/state": "4: ACTIVE"})
    assert best() == 25e9
    tree(tmp_path, {"mlx5_0/ports/1/rate": "50 Gb/sec (1X HDR)"})
    assert best() == 25e9
    after = collected(sys, {**collector.kept(), "other": 7})["mlx5_0:1"]
    assert (after.values["rdma_port.rate"], after.values["rdma_port.rate.best"]) == (6.25e9, 25e9)


def test_every_counter_of_the_catalogue_has_the_width_that_infiniband_gives_it() -> None:
    # Bits in PortCounters of the InfiniBand Architecture Specification, volume 1, 16.1.3.5; what is not there is 64 wide.
    bits = {"symbol_error": 16, "link_error_recovery": 8, "link_downed": 8, "port_rcv_errors": 16, "port_rcv_remote_physical_errors": 16}
    bits |= {"port_rcv_switch_relay_errors": 16, "port_xmit_discards": 16, "port_xmit_constraint_errors": 8, "VL15_dropped": 16}
    bits |= {"port_rcv_constraint_errors": 8, "local_link_integrity_errors": 4, "excessive_buffer_overrun_errors": 4, "port_xmit_wait": 32}
    for theirs, ours in COUNTERS.items():
        metric = BY_NAME[f"rdma_port.{ours}"][1]
        assert (metric.width, metric.saturates) == (bits.get(theirs, 64), theirs in bits), theirs


words = st.one_of(
    st.binary(max_size=40),
    st.from_regex(r"\d{0,25}( G[bB]/sec.*)?", fullmatch=True).map(str.encode),
    st.from_regex(r"\d{1,3}: ?\w*", fullmatch=True).map(str.encode),
)
names = st.sampled_from(
    "state phys_state rate link_layer gids/0 gid_attrs/types/0 gid_attrs/ndevs/0 counters/port_rcv_data counters/link_downed "
    "hw_counters/out_of_sequence hw_counters/unknown hw_counters/rx_bytes".split()
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(files=st.dictionaries(names, words, min_size=1))
def test_any_bytes_in_the_files_give_values_or_a_counted_rejection(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    sys = tree(tmp_path_factory.mktemp("sys"), {f"mlx5_0/ports/1/{name}": content for name, content in files.items()})
    readings = list(RdmaCollector(Site("n", sys=sys)).collect(AT))
    accepted, rejected = accept(readings)
    present = sum(value is not None for reading in readings for value in reading.values.values())
    assert sum(len(one.values) for one in accepted) + rejected == present
    assert len(accepted) == 1


def test_a_folder_that_is_full_of_nonsense_is_read_too(tmp_path: Path) -> None:
    odd = ["ports/1/state", "ports/x/state", "ports/-1/state", "ports/9999/state"]
    sys = tree(tmp_path, {f"mlx5_0/{name}": "4: ACTIVE" for name in odd} | {"notes.txt": "a file in the place of a device"})
    (sys / "class/infiniband" / os.fsdecode(b"bad\xff")).mkdir()
    assert list(collected(sys)) == ["mlx5_0:1"]


def test_the_fixture_site_can_be_given_another_tree(site: Site, tmp_path: Path) -> None:
    assert list(RdmaCollector(replace(site, sys=tmp_path)).collect(AT)) == []
