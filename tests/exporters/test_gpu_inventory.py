"""Which GPUs should be there."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.gpu.inventory import FORGET, Inventory, addresses
from exporters.sources.gpu.accelerator import Device
from exporters.sources.gpu.nvidia_proc import parse

HOUR = 3600.0
AT = 490_000 * HOUR


def test_a_gpu_that_is_gone_for_more_than_a_day_was_taken_out_and_the_next_agent_does_not_miss_it() -> None:
    inventory = Inventory({}, "v")
    a, b = Device("a", "0000:01:00.0", vendor="v"), Device("b", "0000:02:00.0", vendor="v")
    inventory.there([a, b], AT)
    inventory.there([a], AT + FORGET * HOUR)
    assert inventory.uuids() == ["a", "b"]
    inventory.there([a], AT + (FORGET + 1) * HOUR)
    assert inventory.uuids() == ["a"]
    assert Inventory(inventory.kept(), "v").uuids() == ["a"]
    assert inventory.kept()["gpu.seen/v/b/0000:02:00.0"] == 0, "what was kept before is taken back"


def test_a_kept_gpu_is_known_by_its_address_before_its_driver_has_answered() -> None:
    kept = {"gpu.seen/nvidia/GPU-1/0000:3b:00.0": 490_000, "gpu.seen/amd/GPU-2/0000:5d:00.0": 0, "kmsg": 7}
    assert addresses(kept) == {"0000:3b:00.0": "GPU-1"}
    assert Inventory(kept, "amd").uuids() == [], "each driver misses its own"


def test_a_loss_is_told_once_until_the_gpu_answers_again() -> None:
    inventory = Inventory({"gpu.seen/v/a/0000:01:00.0": 490_000, "gpu.lost/a": 3}, "v")  # lost for the second time, and told of
    assert inventory.lost("a") is None
    inventory.found("a")
    assert (inventory.lost("a"), inventory.lost("a")) == (3, None)


@given(
    st.dictionaries(st.one_of(st.text(), st.text().map("gpu.seen//".__add__), st.text().map("gpu.lost/".__add__)), st.integers(0, 1 << 40))
)
def test_whatever_was_kept_is_read_or_left_alone(kept: dict[str, int]) -> None:
    inventory = Inventory(kept, "")
    inventory.there([Device("a", "0000:01:00.0")], AT)
    assert "a" in inventory.uuids() and all(value >= 0 for value in inventory.kept().values())


@given(st.one_of(st.text(), st.text().map("GPU UUID: \t GPU-6b1c3a52-0000-4f31-9d0e-0000000000a0\nBus Location: ".__add__)))
def test_whatever_the_kernel_module_says_names_a_gpu_or_none(text: str) -> None:
    device = parse(text)
    assert device is None or device.uuid.startswith("GPU-")
