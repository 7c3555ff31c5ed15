"""The page of the fleet: empty, with every state, filtered, searched, and at two thousand nodes."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST
from pipeline.hold_records import HoldTransition, MaintenanceTransition, SilenceTransition
from pipeline.records import Beat
from pipeline.store import Store

Console = Callable[..., AppTest]
Says = Callable[[AppTest], str]


def hold(machines: Any, kind: type[HoldTransition], matcher: str) -> HoldTransition:
    return kind(
        old_state="", new_state="held", reason="rack move", actor="ann", at=machines.back(60), hold=f"h-{matcher}", matcher=matcher,
        owner="ann", starts_at=machines.back(60), ends_at=machines.back(-3600),
    )  # fmt: skip


@pytest.fixture
def mixed(machines: Any, seed: Any, store: Store) -> Any:
    """A node in every state but gone, and a run on two of them."""
    machines.host("gpu-01", busy=0.5, io=0.2)
    machines.mount("gpu-01", "/data", 0.985)
    machines.host("gpu-02")
    machines.host("gpu-03")
    machines.host("gpu-04", ages=(400.0, 200.0))
    machines.host("gpu-05", ages=(95.0, 60.0))
    seed.write(machines.started("llama", "gpu-01"))
    ranks = "0:alive:1,1:alive:2"
    beats = [
        Beat(component="launcher", at=machines.back(1), node=n, run="llama", attempt="llama-1", ranks=ranks) for n in ("gpu-01", "gpu-05")
    ]
    seed.write(
        *beats,
        machines.incident("full", "gpu-01", title="/data is full: 1.5 GB of 100 GB free"),
        machines.incident("slow", "gpu-02", severity="warning", title="Tasks wait for a processor"),
    )
    seed.write(hold(machines, SilenceTransition, "node=gpu-01,fault=oom"), hold(machines, MaintenanceTransition, "node=gpu-02"))
    return machines


def cells(markup: str) -> list[str]:
    """The nodes of the table in their order."""
    table = markup.rpartition("<table")[2]
    return re.findall(r'<tr><td[^>]*><a href="node\?node=([^"]+)"', table)


def test_a_fleet_of_none_says_how_to_begin(console: Console, says: Says) -> None:
    said = says(console("fleet"))
    assert "No node has been heard of yet." in said
    assert (
        "SUREFOOT_INGEST__URL=http://INGEST-HOST:4318 SUREFOOT_INGEST__TOKEN_FILE=TOKEN-FILE surefoot agent" in said
        and "surefoot up" in said
    )


def test_the_worst_node_comes_first_and_each_says_what_is_wrong(console: Console, says: Says, markup_of: Says, mixed: Any) -> None:
    page = console("fleet")
    markup, said = markup_of(page), says(page)
    assert cells(markup) == ["gpu-01", "gpu-04", "gpu-05", "gpu-02", "gpu-03"]
    assert "1 of 5 nodes failed gpu-01: /data is full: 1.5 GB of 100 GB free. 3 other nodes not ok." in said
    assert "◆ failed 1 " in said and "? unknown 1 " in said and "~ telemetry lost 1 " in said and "▲ degraded 1 " in said
    assert "✓ ok 1 " in said and "○ gone" not in said
    # CPU and I/O by hand from the fixture: half of all CPUs, a fifth of the time
    assert "/data is full: 1.5 GB of 100 GB free llama 2 ranks 50.0 % 48 GB of 64 GB 20.0 % for I/O 98.5 % /data" in said
    assert re.search(r"\? unknown silent for 3 min [2-5]\d s: neither its agent nor a launcher is heard none - - - -", said)
    lost = r"by its launcher ~ telemetry lost its agent is silent for 1 min [0-5]\d s; its launcher"
    assert re.search(rf"heard (just now|\d+ s ago) {lost}", said)
    assert 'href="incident?incident=full"' in markup and 'href="run?run=llama"' in markup
    assert "partly silenced" in said and "in maintenance" in said
    assert "GPUs" not in said


def test_a_fleet_that_is_well_says_so_and_shows_gpus_where_there_are_any(console: Console, says: Says, machines: Any) -> None:
    from pipeline.catalog.metrics import Family

    machines.host("vm")
    machines.host("gpu-01")
    machines.device(Family("gpu", ("node", "uuid"), "", ()), {"node": "gpu-01", "uuid": "x"}, {})
    said = says(console("fleet"))
    assert "All is well on 2 nodes. No incident is open on a node, and every agent is heard." in said
    assert "fullest file system GPUs gpu-01" in said
    assert "Map" not in said  # two nodes need none


def test_the_state_and_a_part_of_the_name_choose_nodes(console: Console, says: Says, markup_of: Says, mixed: Any) -> None:
    assert cells(markup_of(console("fleet", state="unknown"))) == ["gpu-04"]
    assert cells(markup_of(console("fleet", search="GPU-0", state="degraded"))) == ["gpu-02"]
    page = console("fleet")
    page.text_input[0].set_value("05").run()
    assert cells(markup_of(page)) == ["gpu-05"]
    page.text_input[0].set_value("nobody").run()
    assert "No node is like that." in says(page)
    assert "1 of 5 nodes failed" in says(page)  # the summary is of all


def test_a_node_that_was_not_heard_for_a_day_is_gone_and_comes_last(console: Console, says: Says, markup_of: Says, machines: Any) -> None:
    machines.device(HOST, {"node": "a-old"}, {})
    machines.host("b-new")
    page = console("fleet")
    assert cells(markup_of(page)) == ["b-new", "a-old"]
    assert "All is well on 1 node." in says(page) and "○ gone 1 not heard for over a day" in says(page)


def test_two_thousand_nodes_are_in_the_map_and_the_worst_hundred_in_the_table(
    console: Console, says: Says, markup_of: Says, machines: Any, seed: Any
) -> None:
    names = [f"gpu-{i}" for i in range(1, 2001)]
    devices = [{"device_id": device_id(HOST, {"node": n}), "family": "host", "node": n, "name": n} for n in names]
    machines.insert("devices", [d | {"attrs": {}, "seen_at": machines.back(500)} for d in devices])
    ages = {n: 300.0 if i % 40 == 0 else 3.0 for i, n in enumerate(names, 1)}  # fifty are silent
    machines.insert("host_raw", [{"device_id": d["device_id"], "ts": machines.back(ages[d["node"]]), "node": d["node"]} for d in devices])
    seed.write(machines.incident("x", "gpu-1777"), machines.incident("y", "gpu-40", severity="warning"))
    page = console("fleet")
    markup, said = markup_of(page), says(page)
    listed = cells(markup)
    silent = [f"gpu-{i}" for i in range(40, 2001, 40)]
    # the silent one with a warning before the other silent ones; then those that are well, by their numbers
    assert listed == ["gpu-1777", *silent, *[n for n in names if n not in silent and n != "gpu-1777"][:49]]
    squares = re.findall(r'<a href="node\?node=([^"]+)" title="', markup)
    assert len(squares) == 2000 and squares[0] == "gpu-1777" and squares[-1] == "gpu-1999"
    assert "1 of 2,000 nodes failed" in said and "? unknown 50 " in said and "✓ ok 1,949 " in said
    assert "The first 100 of 2,000. The map shows them all" in said
    assert cells(markup_of(console("fleet", search="gpu-1776"))) == ["gpu-1776"]


def test_text_from_data_is_never_markup(console: Console, markup_of: Says, machines: Any, seed: Any) -> None:
    for i in range(13):
        machines.host(f"<b>{i}</b>")
    seed.write(machines.incident("x", "<b>3</b>", title="<script>alert(1)</script>"))
    for page in (console("fleet"), console("node", node="<b>3</b>")):
        markup = markup_of(page)
        assert "<script>" not in markup and "<b>3" not in markup and "&lt;script&gt;" in markup


def test_an_incident_page_leads_to_its_node(console: Console, markup_of: Says, machines: Any, seed: Any) -> None:
    machines.host("gpu-01")
    seed.write(machines.incident("x", "gpu-01"), machines.finding("x", "gpu-01"))
    assert markup_of(console("incident", incident="x")).count('<a href="node?node=gpu-01">gpu-01</a>') == 2


def test_now_leads_to_silent_nodes_to_the_worst_incidents_node_and_to_the_fleet(console: Console, markup_of: Says, seed: Any) -> None:
    seed.signs(silent=("gpu-11",))
    seed.waiting("r", ago=42)
    markup = markup_of(console("now"))
    assert '>rank 5 on <a href="node?node=gpu-08">gpu-08</a>, open since' in markup
    assert '<a href="node?node=gpu-11">gpu-11</a>' in markup and '<a href="fleet">2 agents</a>' in markup
