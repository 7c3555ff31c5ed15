"""Network interfaces from small trees, and what a driver says through ethtool's ioctl: a driver of our own answers it here."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.collector import Site
from exporters.encode import accept
from exporters.network.netdev import STATISTICS, NetdevCollector
from exporters.sources.network import ethtool, netdev
from exporters.sources.network.ethtool import Pauses, Statistics, pauses
from pipeline.clock import utcnow


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / "class/net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


def test_no_interface_gives_nothing(tmp_path: Path) -> None:
    assert list(NetdevCollector(Site("n", sys=tmp_path)).collect(utcnow())) == []


def test_only_real_devices_and_bonds_are_told_of_and_no_virtual_function(tmp_path: Path) -> None:
    files = {
        "eth0/device/uevent": "DRIVER=ice",
        "eth1/device/physfn/vendor": "x",
        "lo/carrier": "1",
        "veth1/carrier": "1",
        "bond0/bonding/x": "",
    }
    found = list(netdev.interfaces(tree(tmp_path, files), STATISTICS.values()))
    assert [(one.name, one.bond, one.driver) for one in found] == [("bond0", True, "bonding"), ("eth0", False, "ice")]


@pytest.mark.parametrize(
    ("speed", "expected"), [("100000", 12.5e9), ("-1", None), ("4294967295", None), ("0", None), ("", None), ("fast", None)]
)
def test_a_speed_is_bytes_a_second_and_none_without_a_link(tmp_path: Path, speed: str, expected: float | None) -> None:
    (one,) = netdev.interfaces(tree(tmp_path, {"eth0/device/uevent": "", "eth0/speed": speed}), ())
    assert one.speed == expected


def test_an_interface_that_is_switched_off_has_no_carrier(tmp_path: Path) -> None:
    sys = tree(tmp_path, {"eth0/device/uevent": "", "eth0/statistics/rx_bytes": "7"})
    os.symlink("/proc/self/mem", sys / "class/net/eth0/carrier")  # opens, and answers with an error, as the kernel does here
    (reading,) = NetdevCollector(Site("n", sys=sys)).collect(utcnow())
    assert reading.values["netdev.carrier"] is None and reading.values["netdev.received"] == 7


def test_an_interface_that_comes_and_goes_in_good_order_is_not_fixed(tmp_path: Path) -> None:
    files = {"eth0/device/uevent": "DRIVER=mlx5_core", "eth1/device/uevent": "DRIVER=ena", "usb0/device/uevent": "DRIVER=cdc_ether"}
    sys = tree(tmp_path, files | {"bond0/bonding/x": ""})
    os.symlink("../../../../bus/usb", sys / "class/net/usb0/device/subsystem")
    assert [one.name for one in netdev.interfaces(sys, ()) if one.fixed] == ["eth0"]


# --- pauses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"rx_prio3_pause": 5, "rx_prio4_pause": 2, "rx_global_pause": 1, "tx_prio3_pause": 9}, Pauses(8, 9, None, None, None, None)),
        ({"rx_prio3_pause_duration": 1_500_000, "tx_prio0_pause_duration": 250}, Pauses(None, None, 1.5, 0.00025, None, None)),
        ({"rx_pfc_ena_frames_pri3": 4, "tx_pause_frames": 1, "pfc_pri3_rx_duration_us": 2_000_000}, Pauses(4, 1, 2.0, None, None, None)),
        ({"rx_priority_3_xoff.nic": 6, "tx_priority_3_xon.nic": 7}, Pauses(6, None, None, None, None, None)),
        ({"port.tx_priority_2_xoff": 3, "port.link_xoff_rx": 8}, Pauses(8, 3, None, None, None, None)),
        ({"rx_prio3_pause_transition": 9, "rx_packets": 1}, Pauses(None, None, None, None, None, None)),
        ({"rx_discards_phy": 2, "tx_discards_phy": 3, "rx_pcs_symbol_err_phy": 4}, Pauses(None, None, None, None, 4, 5)),
    ],
    ids=["mlx5 frames", "mlx5 time", "bnxt", "ice", "i40e", "nothing", "mlx5 errors"],
)
def test_pauses_of_all_priorities_are_one_number(told: dict[str, int], expected: Pauses) -> None:
    assert pauses(told) == expected


class Driver:
    """Answers as a network driver does: include/uapi/linux/ethtool.h."""

    def __init__(self, statistics: dict[str, int]) -> None:
        self.statistics = statistics
        self.asked: list[int] = []

    def __call__(self, interface: str, asked: bytearray) -> None:
        if interface != "eth0":
            raise OSError(19, "No such device")
        (command,) = struct.unpack_from("=I", asked)
        self.asked.append(command)
        many = len(self.statistics)
        if command == 0x37:
            struct.pack_into("=QI", asked, 8, 1 << 1, many)
        elif command == 0x1B:
            words = b"".join(name.encode().ljust(32, b"\0") for name in self.statistics)
            struct.pack_into(f"=I{len(words)}s", asked, 8, many, words)
        else:
            struct.pack_into(f"=I{many}Q", asked, 4, many, *self.statistics.values())


def test_a_driver_is_asked_for_its_names_once_and_for_its_numbers_each_time() -> None:
    driver = Driver({"rx_prio3_pause": 1, "a_name_of_exactly_32_characters_": 1 << 63})
    statistics = Statistics(driver)
    assert statistics.of("eth0") == driver.statistics
    driver.statistics["rx_prio3_pause"] = 9
    assert statistics.of("eth0") == driver.statistics
    assert driver.asked == [0x37, 0x1B, 0x1D, 0x37, 0x1D]


def test_names_are_asked_for_again_when_queues_were_added_and_never_put_to_wrong_numbers() -> None:
    driver = Driver({"a": 1})
    statistics = Statistics(driver)
    assert statistics.of("eth0") == {"a": 1}
    driver.statistics = {"q0": 2, "a": 3}
    assert statistics.of("eth0") == {"q0": 2, "a": 3}

    def grows(interface: str, asked: bytearray) -> None:
        if asked[0] == 0x1D:
            driver.statistics = {**driver.statistics, "q1": 4}
        driver(interface, asked)

    assert Statistics(grows).of("eth0") == {}, "between the two questions it became more"


def test_an_interface_that_is_gone_has_no_statistics() -> None:
    assert Statistics(Driver({"a": 1})).of("eth9") == {}


@given(st.binary(max_size=64))
def test_whatever_a_driver_writes_is_read_without_harm(noise: bytes) -> None:
    def ask(interface: str, asked: bytearray) -> None:
        asked[4 : min(len(asked), 4 + len(noise))] = noise[: max(0, len(asked) - 4)]

    assert all(isinstance(value, int) for value in Statistics(ask).of("eth0").values())


def test_the_kernel_itself_is_asked_without_an_error_whatever_the_interface_can() -> None:
    for name in ("lo", "no-such-interface", "a-name-that-is-longer-than-an-interface-may-have"):
        assert all(value >= 0 for value in ethtool.Statistics().of(name).values())


def test_a_saved_tree_does_not_ask_this_machines_drivers(tmp_path: Path) -> None:
    sys = tree(tmp_path, {"lo/device/uevent": ""})
    (reading,) = NetdevCollector(Site("n", sys=sys)).collect(utcnow())
    assert reading.values["netdev.pauses.received"] is None


files = st.sampled_from(["carrier", "speed", "carrier_changes", "device/uevent", "statistics/rx_bytes", "statistics/odd"])
contents = st.one_of(st.binary(max_size=40), st.from_regex(r"-?\d{0,25}", fullmatch=True).map(str.encode))


@settings(max_examples=100, deadline=None)
@given(tree_of=st.dictionaries(files, contents))
def test_any_bytes_in_the_files_give_values_or_a_counted_rejection(
    tmp_path_factory: pytest.TempPathFactory, tree_of: dict[str, bytes]
) -> None:
    sys = tmp_path_factory.mktemp("sys")
    for name, content in {"device/there": b"", **tree_of}.items():
        path = sys / "class/net/eth0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    readings = list(NetdevCollector(Site("n", sys=sys)).collect(utcnow()))
    (accepted,), rejected = accept(readings)
    assert len(accepted.values) + rejected == sum(value is not None for value in readings[0].values.values())


@given(st.dictionaries(st.text(max_size=40), st.integers(0, 2**64 - 1)))
def test_whatever_a_driver_calls_its_statistics_pauses_are_numbers_or_absent(told: dict[str, int]) -> None:
    assert all(value is None or value >= 0 for value in pauses(told))
