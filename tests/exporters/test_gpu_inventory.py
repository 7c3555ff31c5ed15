"""Which GPUs should be there."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.gpu_inventory import FORGET, Inventory, addresses
from exporters.sources.accelerator import Device

HOUR = 3600.0
AT = 490_000 * HOUR


def test_a_gpu_that_is_gone_for_more_than_a_day_was_taken_out_and_the_next_agent_does_not_miss_it() -> None:
    inventory = Inventory({})
    inventory.there([Device("a", "0000:01:00.0"), Device("b", "0000:02:00.0")], AT)
    inventory.there([Device("a", "0000:01:00.0")], AT + FORGET * HOUR)
    assert inventory.uuids() == ["a", "b"]
    inventory.there([Device("a", "0000:01:00.0")], AT + (FORGET + 1) * HOUR)
    assert inventory.uuids() == ["a"]
    assert Inventory(inventory.kept()).uuids() == ["a"]
    assert inventory.kept()["gpu.seen/b/0000:02:00.0"] == 0, "what was kept before is taken back"


def test_a_kept_gpu_is_known_by_its_address_before_its_driver_has_answered() -> None:
    assert addresses({"gpu.seen/GPU-1/0000:3b:00.0": 490_000, "gpu.seen/GPU-2/0000:5d:00.0": 0, "kmsg": 7}) == {"0000:3b:00.0": "GPU-1"}


def test_a_loss_is_told_once_until_the_gpu_answers_again() -> None:
    inventory = Inventory({"gpu.lost/a": 3})  # lost for the second time, and told of
    assert inventory.lost("a") is None
    inventory.found("a")
    assert (inventory.lost("a"), inventory.lost("a")) == (3, None)


@given(
    st.dictionaries(st.one_of(st.text(), st.text().map("gpu.seen/".__add__), st.text().map("gpu.lost/".__add__)), st.integers(0, 1 << 40))
)
def test_whatever_was_kept_is_read_or_left_alone(kept: dict[str, int]) -> None:
    inventory = Inventory(kept)
    inventory.there([Device("a", "0000:01:00.0")], AT)
    assert "a" in inventory.uuids() and all(value >= 0 for value in inventory.kept().values())
