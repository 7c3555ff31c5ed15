"""PCI addresses, in the forms in which drivers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sources.gpu.pci import normal


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
