"""Another exporter's names beside ours: chosen by name, made of every collector's readings, stale with them."""

from collections.abc import Sequence

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading
from exporters.compat.registry import COMPAT, chosen
from exporters.encode import Accepted, accept, prometheus_text
from exporters.pages import Board
from pipeline.catalog.metrics import DISK, HOST
from pipeline.errors import SettingsError


def node_like(readings: Sequence[Accepted]) -> str:
    """A double of the real ones: the disks' reads under node_exporter's name."""
    rows = [(dict(r.labels)["disk"], value) for r in readings if r.family is DISK for m, value in r.values if m.name == "disk.reads"]
    name = "node_disk_reads_completed_total"
    lines = [f'{name}{{device="{disk}"}} {value}\n' for disk, value in rows]
    return "".join([f"# HELP {name} Reads.\n# TYPE {name} counter\n", *lines]) if lines else ""


DISKS, _ = accept([Reading(DISK, {"node": "n", "disk": d}, {"disk.reads": 5}) for d in ("sda", "sdb")])
MACHINE, _ = accept([Reading(HOST, {"node": "n"}, {"host.load1": 1.5})])


def test_foreign_names_stand_beside_ours_and_vanish_with_them() -> None:
    board = Board([node_like])
    board.put("host", prometheus_text(MACHINE), 120.0, MACHINE)
    board.put("disk", prometheus_text(DISKS), 100.0, DISKS)
    found = [(s.name, s.labels) for f in text_string_to_metric_families(board.page(90.0)) for s in f.samples]
    assert ("node_disk_reads_completed_total", {"device": "sdb"}) in found
    assert ("surefoot_disk_reads_total", {"node": "n", "disk": "sda"}) in found
    assert board.page(110.0) == prometheus_text(MACHINE)


def test_names_are_looked_up_once_each_and_one_that_is_not_there_is_refused() -> None:
    assert chosen(["node", "node"], {"node": node_like}) == [node_like]
    with pytest.raises(SettingsError, match=r"agent\.compat: dcgm is not among node"):
        chosen(["dcgm"], {"node": node_like})


@pytest.mark.parametrize("name", COMPAT)
def test_every_foreign_text_of_nothing_is_empty(name: str) -> None:
    assert COMPAT[name]([]) == ""
