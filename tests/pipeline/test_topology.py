"""Node lists as schedulers write them, and the file that says which nodes lie under which switch."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import hostlist, topology
from pipeline.errors import InputError, SettingsError
from pipeline.topology import parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-[1-3]", ["gpu-1", "gpu-2", "gpu-3"]),
        ("gpu-[008-010,020],Login", ["gpu-008", "gpu-009", "gpu-010", "gpu-020", "login"]),
        ("r[1-2]-n[01-02].site", ["r1-n01.site", "r1-n02.site", "r2-n01.site", "r2-n02.site"]),
        ("a,a,A", ["a"]),
        ("gpu-[1-1]", ["gpu-1"]),
    ],
)
def test_a_list_stands_for_its_names_with_their_zeros_in_lower_case(text: str, names: list[str]) -> None:
    assert hostlist.expand(text) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no list of nodes"),
        ("gpu-[1-3", "is no list of nodes"),
        ("a,,b", "is no list of nodes"),
        ("gpu-[3-1]", "3-1 in 'gpu-[3-1]' runs backwards"),
        ("gpu-[a-c]", "is no list of numbers; write it as [001-050,060]"),
        ("gpu 1", "'gpu 1' in 'gpu 1' is no name of a node"),
        ("x[0-999999999]", "stands for more than 100,000 nodes"),
    ],
)
def test_what_is_no_list_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        hostlist.expand(text)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([f"gpu-{n:03d}" for n in range(1, 51)], "gpu-[001-050]"),
        (["gpu-1", "gpu-2", "gpu-10", "login"], "gpu-10,gpu-[1-2],login"),
        (["gpu-7"], "gpu-7"),
        (["n1.rack2.x", "n2.rack2.x", "n4.rack2.x"], "n[1-2,4].rack2.x"),
        ([], ""),
    ],
)
def test_names_are_folded_to_what_a_scheduler_takes(names: list[str], text: str) -> None:
    assert hostlist.fold(names) == text


@given(st.sets(st.from_regex(r"[a-z]{1,2}[0-9]{0,3}(-[0-9]{1,2})?(\.s[12])?", fullmatch=True), min_size=1, max_size=40))
def test_a_folded_list_stands_for_the_same_names(names: set[str]) -> None:
    assert set(hostlist.expand(hostlist.fold(names))) == names


TREE: dict[str, Any] = {
    "switches": {
        "leaf-01": {"nodes": "GPU-[001-004]", "parent": "spine-1"},
        "leaf-02": {"nodes": ["gpu-005", "gpu-[006-008]"], "parent": "spine-1"},
        "spine-1": {},
    },
    "racks": {"r07": {"nodes": "gpu-[001-002]"}, "r08": {"nodes": "gpu-[003-004]"}},
}


def test_a_node_lies_in_its_rack_its_switch_and_what_is_above_that_the_smallest_first() -> None:
    tree = parse(TREE)
    assert [str(place) for place in tree.of("gpu-001")] == ["rack r07", "switch leaf-01", "switch spine-1"]
    assert tree.of("gpu-099") == ()
    spine = tree.places["spine-1"]
    assert (spine.nodes, spine.places, len(spine.under)) == (frozenset(), ("leaf-01", "leaf-02"), 8)
    order = list(tree.places)
    assert order.index("spine-1") > max(order.index("leaf-01"), order.index("leaf-02")), "what is beneath comes first"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"switch": {}}, "unknown key switch; known are racks, switches, pods, rails"),
        ({"racks": ["r1"]}, "racks must hold names of places"),
        ({"racks": {"r1": "gpu-1"}}, "rack r1 must be like {nodes:"),
        ({"racks": {"r1": {"node": "gpu-1"}}}, "rack r1: unknown key node; known are nodes and parent"),
        ({"racks": {"r1": {"nodes": [1, 2]}}}, "rack r1: nodes must be text or a list of texts"),
        ({"racks": {"r1": {"nodes": "gpu-[2-1]"}}}, "rack r1: 2-1 in 'gpu-[2-1]' runs backwards"),
        ({"racks": {"r1": {"parent": "p"}}}, "rack r1: its parent p stands nowhere in the file"),
        ({"racks": {"r1": {}}, "pods": {"r1": {}}}, "r1 is a rack and a pod: a name may stand only once"),
        ({"pods": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, "pod a: its parents lead in a circle"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_what_is_wrong(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(given))
    with pytest.raises(SettingsError) as refused:
        topology.read(str(path))
    assert str(refused.value).startswith(f"{path}: ") and said in str(refused.value) and "\n" not in str(refused.value)


def test_no_file_is_no_topology_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert topology.read("").of("gpu-1") == ()
    with pytest.raises(SettingsError, match=r"cannot read the topology file .*away\.yaml: No such file"):
        topology.read(str(tmp_path / "away.yaml"))
    (tmp_path / "twice.yaml").write_text("racks:\n  r1: {}\n  r1: {}\n")
    with pytest.raises(SettingsError, match="the key r1 stands twice"):
        topology.read(str(tmp_path / "twice.yaml"))


@pytest.mark.parametrize("name", ["r\x001", "r\u20281", "r\n1", "r\udcff1"])
def test_a_place_whose_name_would_break_a_line_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="printable characters"):
        parse({"racks": {name: {"nodes": "gpu-1"}}})
