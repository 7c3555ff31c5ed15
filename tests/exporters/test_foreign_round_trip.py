"""What we give under other programs' names, and read again by them, is what we had: the two tables agree on every unit."""

from datetime import UTC, datetime

import pytest

from exporters.collector import Reading, Site
from exporters.compat.dcgm import dcgm_text
from exporters.compat.node import node_text
from exporters.encode import accept
from exporters.foreign import NAME_MAPS
from exporters.foreign.translate import translate
from exporters.gpu.collector import GpuCollector
from exporters.network.rdma import RdmaCollector
from exporters.sources.prometheus_text import parse

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def read_again(text: str) -> dict[tuple[str, ...], Reading]:
    page = parse(text)
    assert page.rejected == 0
    readings, _ = translate(page.samples, NAME_MAPS, {"target": "t"}, "node1")
    return {(r.family.name, *r.identity.values()): r for r in readings}


def test_gpus_by_dcgms_names_come_back_as_they_were(site: Site) -> None:
    mine = [one for one in GpuCollector(site).collect(AT) if isinstance(one, Reading) and one.family.name == "gpu"]
    theirs = read_again(dcgm_text(accept(mine)[0]))
    assert {("gpu", *r.identity.values()) for r in mine} == theirs.keys()
    compared = 0
    for reading in mine:
        for name, value in theirs["gpu", *reading.identity.values()].values.items():
            if value is not None:
                compared += 1
                # whole MHz, MiB, degrees and percents are all that their page has room for
                assert value == pytest.approx(reading.values[name], rel=0.01), name
    assert compared > 40


def test_rdma_ports_by_node_exporters_names_come_back_as_they_were(site: Site) -> None:
    mine = [one for one in RdmaCollector(site).collect(AT) if isinstance(one, Reading)]
    theirs = read_again(node_text(accept(mine)[0]))
    ours = {("rdma_port", *r.identity.values()): r.values for r in mine}
    assert theirs.keys() == ours.keys()
    told = {(key, name): value for key, r in theirs.items() for name, value in r.values.items() if value is not None}
    assert len(told) > 40 and told == {(key, name): ours[key][name] for key, name in told}
