"""Bounds in the words in which people set them."""

import pytest

from pipeline.sizes import bound


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0 bytes"),
        (1000, "1000 bytes"),
        (1 << 10, "1 KiB"),
        (1536, "1536 bytes"),
        (67_108_864, "64 MiB"),
        (2 << 30, "2 GiB"),
        ((2 << 30) + (1 << 20), "2049 MiB"),
    ],
)
def test_a_bound_is_said_in_powers_of_1024_where_it_is_a_whole_number_of_them(value: int, said: str) -> None:
    assert bound(value) == said
