"""PCI addresses, in the forms in which drivers write them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sources.gpu.pci import Bus, normal


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML's busId
        ("0000:3B:00.0", "0000:3b:00.0"),  # NVML's busIdLegacy
        ("0000:3b:00", "0000:3b:00.0"),  # the driver's "NVRM: Xid (PCI:0000:3b:00): 79, …"
        ("PCI:0000:3b:00", "0000:3b:00.0"),
        ("3b:00.1", "0000:3b:00.1"),  # lspci without domains
        ("00010000:01:00.0", "10000:01:00.0"),  # a domain behind a VMD controller has five digits in sysfs
        ("0009:1:0.0", "0009:01:00.0"),
        ("", ""),
        ("0000:3b:20.0", ""),  # a bus has 32 devices
        ("N/A", ""),
        ("0000:3b:00.8", ""),
    ],
)
def test_every_way_to_write_an_address_becomes_that_of_sysfs(address: str, expected: str) -> None:
    assert normal(address) == expected


@given(st.text())
def test_any_text_becomes_an_address_or_nothing(text: str) -> None:
    assert normal(normal(text)) == normal(text)


def test_a_device_that_takes_the_place_of_another_on_the_bus_is_seen_at_the_next_look(tmp_path: Path) -> None:
    bus = Bus(tmp_path)
    assert not bus.has(0x10DE)
    old = _device(tmp_path, "0000:3b:00.0", "0x8086", "0x020000")  # a network controller
    assert not bus.has(0x10DE)
    _device(tmp_path, "0000:3b:00.0.new", "0x10de", "0x030200").rename(old.rename(tmp_path / "taken out").parent / "new")
    (tmp_path / "new").rename(old)
    assert bus.has(0x10DE)
    assert not bus.has(0x8086)
    old.rename(tmp_path / "taken out too")
    assert not bus.has(0x10DE)


def _device(sys: Path, address: str, vendor: str, kind: str) -> Path:
    folder = sys / "bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")
    return folder
