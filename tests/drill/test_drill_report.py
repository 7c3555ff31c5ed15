"""What a drill's result tells about the nodes that it was on."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.catalog import faults
from surefoot.drill.plan import Located, Plan, Result, Truth
from surefoot.drill.report import as_json_line, as_text

TRUTH = Truth(datetime(2026, 10, 1, 12, tzinfo=UTC), "r-1", Located("kernel", "node-b", None), "forward", faults.HOST_DOWN)


def result(first: str, last: str) -> Result:
    nodes: dict[str, Any] = {"nodes": tuple(first.split()), "nodes_after": tuple(last.split())}
    return Result(Plan("node-loss"), "r", TRUTH, incident="i", loss="cost 1 GPU-h", **nodes)


@pytest.mark.parametrize(
    ("first", "last", "line"),
    [
        ("node-a node-b", "node-a node-c", "node-b was left out, the spare node-c was taken in"),
        ("node-a node-b", "node-a", "node-b was left out, nobody took its place"),
        ("node-a node-b", "node-a node-b", None),
        ("", "", None),
    ],
)
def test_the_node_that_was_left_out_and_the_spare_that_was_taken_in_are_named(first: str, last: str, line: str | None) -> None:
    told = as_text(result(first, last)).splitlines()
    assert [one for one in told if "left out" in one] == ([line] if line else [])
    assert told[-2:] == ["cost 1 GPU-h", "all right"]


def test_a_script_reads_them_as_lists() -> None:
    told = json.loads(as_json_line(result("node-a node-b", "node-a node-c")))
    assert (told["left_out"], told["taken_in"]) == (["node-b"], ["node-c"])
    assert "taken_in" not in json.loads(as_json_line(result("node-a node-b", "node-a node-b")))
