"""What should be there and is not."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.missed import FORGET, Missed

HOUR = 3600.0
AT = 490_000 * HOUR
A, B = "0000:01:00.0", "0000:02:00.0"


def test_what_was_used_and_is_not_listed_any_more_is_missed_for_a_day_also_by_the_next_agent() -> None:
    missed = Missed("port", {})
    assert missed.missing({"p0": A, "p1": B, "p2": ""}, {"p0", "p2"}, AT) == {}
    assert missed.missing({}, (), AT + 1) == {"p0": A, "p2": ""}, "p1 was never used"
    after = Missed("port", {**missed.kept(), "best/port/p1": 7})
    assert after.missing({}, (), AT + FORGET * HOUR) == {"p0": A, "p2": ""}
    assert after.missing({}, (), AT + (FORGET + 1) * HOUR) == {}, "it was taken out"
    assert Missed("port", after.kept()).missing({}, (), AT + (FORGET + 1) * HOUR) == {}
    assert Missed("netdev", missed.kept()).missing({}, (), AT) == {}, "each kind misses its own"


def test_what_is_listed_again_is_missed_no_longer() -> None:
    missed = Missed("port", {})
    missed.missing({"p0": A}, {"p0"}, AT)
    assert missed.missing({}, (), AT) == {"p0": A}
    assert missed.missing({"p0": A}, (), AT) == {}
    assert missed.missing({}, (), AT + FORGET * HOUR) == {"p0": A}, "and is known from then on"


def test_another_name_for_the_same_place_is_no_loss_and_another_device_under_its_name_is() -> None:
    missed = Missed("port", {})
    missed.missing({"p0": A, "p1": B}, {"p0", "p1"}, AT)
    assert missed.missing({"eth7": A, "p1": B}, {"eth7"}, AT) == {}
    assert missed.missing({"eth7": B}, {"eth7"}, AT) == {A: A}, "what lay there is gone, and its name is taken"


@given(st.dictionaries(st.text().map("gone/x/".__add__), st.integers(0, 1 << 40)), st.dictionaries(st.text(), st.text()))
def test_whatever_was_kept_and_is_listed_is_missed_or_left_alone(kept: dict[str, int], listed: dict[str, str]) -> None:
    missed = Missed("x", kept)
    assert not {name for name, place in missed.missing(listed, listed.keys(), AT).items() if listed.get(name) == place and place != name}
    assert all(value >= 0 for value in missed.kept().values())
