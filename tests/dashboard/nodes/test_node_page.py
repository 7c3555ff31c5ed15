"""The page of one node: well, in trouble, silent, unknown, and what it says of each reading."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import charts
from pipeline.catalog.metrics import CGROUP
from pipeline.errors import StoreUnavailable
from pipeline.hold_records import MaintenanceTransition
from pipeline.records import Beat, Event, Live
from pipeline.store import Store

Console = Callable[..., AppTest]
Says = Callable[[AppTest], str]


def test_a_node_that_is_well_shows_its_readings_with_units_and_ages(console: Console, says: Says, machines: Any) -> None:
    machines.host("gpu-01", busy=0.5, io=0.2, ages=[3.0 + 10 * n for n in range(12)], shm_free=None)
    machines.mount("gpu-01", "/data", 0.9)
    machines.disk("gpu-01", "nvme0n1", read=2.5e9, written=1e6, ages=(23.0, 13.0, 3.0))
    machines.device(CGROUP, {"node": "gpu-01", "cgroup": "/job", "run": "r"}, {3.0: {"memory_used": 7 * 10**9}})
    machines.collector("gpu-01", "host", ok=True)
    page = console("node", node="GPU-01")  # names are case-folded
    said = says(page)
    assert "✓ No incident is open and its agent is heard. OK · heard" in said
    assert "CPU busy 50.0 % of 8 CPUs, over the last 2 min" in said and "Memory available 48 GB of 64 GB" in said
    assert "Pressure 20.0 % tasks waited for I/O, over the last 2 min" in said and "Fullest file system 90.0 % /data" in said
    assert "No incident was ever opened about this node." in said and "No run in progress has a launcher here." in said
    assert re.search(r"Memory that could be given out without swapping 48 GB - \d s ago", said)
    assert re.search(r"CPU time spent on anything but idle and iowait, all CPUs together 46 d \d+ h 4\.00 s a second", said)
    assert "Size of /dev/shm not read - -" in said
    assert "Time of boot 2023-11-14 22:13:20 UTC" in said
    assert "/data /dev/data 100 GB 10 GB 1,000 900 no yes 1 ms" in said
    assert "nvme0n1 2.5 GB/s" in said and "/job r 7 GB" in said
    assert "host ✓ reads - " in said
    assert "Nothing is held back on this node." in said and 'surefoot maintenance add node=gpu-01 --for 2h --reason "why"' in said.replace(
        "&quot;", '"'
    )
    assert "stale" not in said
    assert len(page.get("vega_lite_chart")) == 5


def test_a_node_in_trouble_says_why_what_runs_there_what_happened_and_what_is_held_back(
    console: Console, says: Says, markup_of: Says, machines: Any, seed: Any
) -> None:
    machines.host("n1")
    machines.collector("n1", "mount", ok=False, ok_ago=70)
    machines.collector("n1", "host", ok=True)
    beat = Beat(component="launcher", at=machines.back(1), node="n1", run="llama-3.1", attempt="llama-3.1-2", ranks="0:alive:1,1:alive:2")
    ranks = [
        Live(
            run="llama-3.1", attempt="llama-3.1-2.1", node="n1", rank=0, at=machines.back(1), pid=1, step=1234, phase="comm_wait",
            since=machines.back(41), collective="all_reduce", process_state="S",
        ),
        Live(run="llama-3.1", attempt="llama-3.1-2.1", node="n1", rank=1, at=machines.back(30), pid=2, process_state="D"),
        Live(run="llama-3.1", attempt="llama-3.1-1", node="n1", rank=7, at=machines.back(200), pid=2),  # of the attempt before
    ]  # fmt: skip
    why = "TimeoutError: /data did not answer"
    failed = Event(
        id="c", at=machines.back(69), kind="collector_failed", layer="unknown", severity="warning", node="n1", code="mount", message=why
    )
    oom = Event(
        id="o", at=machines.back(50), kind="oom_kill", layer="kernel", severity="critical", node="n1", run="llama-3.1", rank=3, count=2,
        code="node",
    )  # fmt: skip
    over = machines.incident("over", "n1", title="Was full", new_state="resolved", resolved_at=machines.back(9), at=machines.back(9))
    window = MaintenanceTransition(
        old_state="", new_state="held", reason="riser", actor="ann", at=machines.back(60), hold="m1", matcher="node=n1", owner="ann",
        starts_at=machines.back(-600), ends_at=machines.back(-3600),
    )  # fmt: skip
    seed.write(machines.started("llama-3.1", "n1"), beat, *ranks, failed, oom, over, window)
    seed.write(machines.incident("hot", "n1", title="Rank 3 was killed", run="llama-3.1", rank=3))
    page = console("node", node="n1")
    said, markup = says(page), markup_of(page)
    assert "◆ Rank 3 was killed. Failed · heard" in said and '<a class="sf-status-line" href="incident?incident=hot">' in markup
    assert "Incidents 1 open, 1 resolved Rank 3 was killed" in said and said.index("Rank 3 was killed since") < said.index("Was full")
    assert "Runs on it now 2 ranks" in said
    assert "llama-3.1 0 llama-3.1-2.1 1,234 comm_wait: all_reduce 40 s sleeping" in said
    assert "llama-3.1 1 llama-3.1-2.1 - between phases - in uninterruptible sleep unknown: heard" in said
    assert said.index("mount ▲ reads nothing TimeoutError: /data did not answer 1 min") < said.index("host ✓ reads -")
    assert "OOM kill ◆ critical llama-3.1 rank 3 2 times. node" in said
    assert "maintenance planned from" in said and "ann riser surefoot maintenance end m1" in said


def test_a_silent_node_shows_what_was_read_last_as_stale(console: Console, says: Says, machines: Any) -> None:
    machines.host("n1", ages=(7300.0, 7210.0, 7200.0))
    machines.mount("n1", "/gone", 0.5, ages=(7300.0,))
    machines.mount("n1", "/data", 0.5, ages=(7200.0,))
    page = console("node", node="n1")
    said = says(page)
    assert "? Silent for 2 h 00 min: neither its agent nor a launcher is heard. Unknown · heard 2 h 00 min ago" in said
    assert "CPU busy no data no fresh reading" in said and "These readings are stale." in said
    assert "48 GB - 2 h 00 min ago" in said
    assert "/gone /dev/gone" in said and "not since 2 h 01 min ago" in said
    assert "Its agent sent nothing in this window. Choose a longer window." in said
    assert len(console("node", node="n1", window="6 h").get("vega_lite_chart")) == 4  # no disk was told of


def test_a_node_that_only_its_launcher_tells_of_has_no_readings(console: Console, says: Says, machines: Any, seed: Any) -> None:
    seed.write(machines.started("r", "n1"), Beat(component="launcher", at=machines.back(1), node="n1", run="r", attempt="r-1"))
    said = says(console("node", node="n1"))
    assert "~ No agent speaks for this node, so a lost node would not be noticed; its launcher still speaks, so the run" in said
    assert "No reading to show. Its agent was not heard in the last 24 hours." in said
    assert "What their ranks do is not known" in said


def test_a_line_over_time_breaks_where_nothing_was_read_and_its_axis_is_given_as_text() -> None:
    """Of numbers Vega-Lite makes no domain for lines of time: the whole chart would collapse to its left edge."""
    at = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
    line = [(at, 0.5), (at + timedelta(seconds=60), 0.25)]
    chart = charts.over_time({"busy": line}, charts.SHARE, at, at + timedelta(seconds=90), 30)
    assert [row["value"] for row in chart.data.to_pylist()] == [0.5, None, 0.25, None]
    assert chart.to_dict()["encoding"]["x"]["scale"]["domain"] == ["2026-11-30T14:00:00+00:00", "2026-11-30T14:01:30+00:00"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "No node is named in the address. Choose one in the fleet"),
        ({"node": "<b>x</b>"}, "No node called &lt;b&gt;x&lt;/b&gt; has been"),
    ],
)
def test_an_address_without_a_node_gets_help(console: Console, says: Says, markup_of: Says, query: dict[str, str], said: str) -> None:
    page = console("node", **query)
    assert said in says(page) and '<a href="fleet">' in markup_of(page) and "<b>x" not in markup_of(page)


def test_when_the_store_goes_away_nothing_is_claimed(
    console: Console, says: Says, machines: Any, later: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.host("n1")
    nodes, node = console("fleet"), console("node", node="n1")
    assert "All is well" in says(nodes)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("connection refused")

    monkeypatch.setattr(Store, "query", away)  # the edge to the foreign server, where it fails
    later()
    assert "Not known: the store does not answer." in says(nodes.run()) and "All is well" not in says(nodes)
    later()
    said = says(node.run())
    assert "The store does not answer; what follows is what was read last." in said and "OK · heard" not in said
