"""Every collector of the registry on the fixture machine, against the golden page; adding one has no forgotten step."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading, Site, readings_in
from exporters.encode import accept, prometheus_name, prometheus_text
from exporters.host.machine import HostCollector
from exporters.registry import COLLECTORS, Entry
from exporters.sources.procfs import Mount
from exporters.sources.storage.probes import Usage
from exporters.storage.disks import DiskCollector
from exporters.storage.mounts import distinct
from pipeline.catalog.metrics import FAMILIES

GOLDEN = Path(__file__).parents[1] / "golden"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEADY = {"mount.probe.time": 0.001, "mount.write.time": 0.025, "gpu.probe.time": 0.001, "scrape.time": 0.002}  # what no fixture can fix


def readings(entry: Entry, site: Site) -> list[Reading]:
    collector = entry.make(site)
    found = [*readings_in(collector.collect(AT))]
    if callable(close := getattr(collector, "close", None)):
        close()
    return [
        Reading(r.family, r.identity, {k: STEADY.get(k, v) if v is not None else None for k, v in r.values.items()}, r.attributes, r.since)
        for r in found
    ]


@pytest.mark.parametrize("entry", [e for e in COLLECTORS if e.families], ids=lambda e: e.name)
def test_a_collectors_page_of_the_fixture_machine_is_the_golden_one(entry: Entry, site: Site) -> None:
    accepted, rejected = accept(readings(entry, site))
    golden = GOLDEN / f"collector_{entry.name}.prom"
    assert golden.exists(), f"write {golden} by hand from the fixture"
    assert rejected == 0
    assert prometheus_text(accepted) == golden.read_text()


@pytest.mark.parametrize("entry", [e for e in COLLECTORS if e.families], ids=lambda e: e.name)
def test_a_collector_gives_exactly_the_metrics_of_its_families(entry: Entry, site: Site) -> None:
    found = readings(entry, site)
    assert {r.family.name for r in found} == {family.name for family in entry.families}
    for family in entry.families:
        mine = [r for r in found if r.family is family]
        assert {name for r in mine for name in r.values} == {m.name for m in family.metrics}
        shown = {name for r in mine for name, value in r.values.items() if value is not None}
        assert shown == {m.name for m in family.metrics}, "the fixture has no value for it"


@pytest.mark.parametrize("entry", [e for e in COLLECTORS if e.families], ids=lambda e: e.name)
def test_the_page_equals_the_readings(entry: Entry, site: Site) -> None:
    found = readings(entry, site)
    page = prometheus_text(accept(found)[0])
    parsed = {(s.name, frozenset(s.labels.items())): float(s.value) for f in text_string_to_metric_families(page) for s in f.samples}
    names = {m.name: prometheus_name(m) for family in entry.families for m in family.metrics}
    expected = {
        (names[name], frozenset({**r.identity, **r.attributes}.items())): float(v)
        for r in found
        for name, v in r.values.items()
        if v is not None
    }
    assert parsed == expected


def test_every_family_is_read_by_one_collector_or_is_the_agents_own() -> None:
    families = [family.name for entry in COLLECTORS for family in entry.families]
    assert sorted([*families, "agent", "sender"]) == sorted(f.name for f in FAMILIES)
    assert len({entry.name for entry in COLLECTORS}) == len(COLLECTORS)


def test_a_hung_mount_says_so_and_the_others_keep_their_readings(make_site: Callable[..., Site]) -> None:
    def probe(path: str) -> Usage:
        if path == "/mnt/big data":
            raise OSError("stale file handle")
        return Usage(1000, 100, 10, 5)

    mounts = next(e for e in COLLECTORS if e.name == "mount")
    seen = {r.identity["mount_point"]: r.values for r in mounts.make(make_site(probe)).collect(AT) if isinstance(r, Reading)}
    assert seen["/mnt/big data"]["mount.probe.ok"] == 0 and seen["/mnt/big data"]["mount.size"] is None
    assert seen["/"]["mount.probe.ok"] == 1 and seen["/"]["mount.size"] == 1000


def test_a_file_system_is_watched_once_at_its_shortest_place_and_overlays_only_at_the_root() -> None:
    def mount(point: str, device: str, kind: str = "ext4") -> Mount:
        return Mount(point, "src", kind, device, False)

    seen = distinct(
        [
            mount("/", "0:1", "overlay"),
            mount("/etc/hosts", "8:1"),
            mount("/d", "8:1"),
            mount("/m", "0:2", "overlay"),
            mount("/p", "0:3", "proc"),
        ]
    )
    assert [m.mount_point for m in seen] == ["/", "/d"]


@pytest.mark.parametrize(("ahead", "believed"), [(0, 1), (60, 1), (61, 0), (10**9, 0)])
def test_a_boot_that_has_not_come_yet_is_refused_counted_and_begins_no_counter(tmp_path: Path, ahead: int, believed: int) -> None:
    boot = AT.timestamp() + ahead
    (tmp_path / "stat").write_text(f"cpu0 1 2 3 4 5 6 7 8\nbtime {boot:.0f}\n")
    (tmp_path / "diskstats").write_text("8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n")
    site = Site("n", proc=tmp_path, sys=tmp_path)
    (host,), rejected = accept(HostCollector(site).collect(AT))
    assert [value for metric, value in host.values if metric.name == "host.boot"] == [boot] * believed
    assert rejected == 1 - believed
    (disk,), _ = accept(DiskCollector(site).collect(AT))
    assert [reading.since_ns for reading in (host, disk)] == [round(boot * 1e9) * believed] * 2


LISTS = {
    "mount": "proc/self/mountinfo",
    "nfs": "proc/self/mountstats",
    "disk": "proc/diskstats",
    "disk_health": "sys/class/nvme",
    "rdma_port": "sys/class/infiniband",
    "netdev": "sys/class/net",
}


@pytest.mark.parametrize(("name", "where"), LISTS.items())
def test_a_list_of_the_kernel_that_cannot_be_read_is_an_error_and_not_a_machine_without(name: str, where: str, tmp_path: Path) -> None:
    """A link to itself cannot be opened by root either."""
    (tmp_path / where).parent.mkdir(parents=True)
    (tmp_path / where).symlink_to(tmp_path / where)
    collector = next(entry for entry in COLLECTORS if entry.name == name).make(
        replace(Site("n"), proc=tmp_path / "proc", sys=tmp_path / "sys")
    )
    with pytest.raises(OSError, match="symbolic links"):
        list(collector.collect(AT))


def test_every_collector_reads_this_very_machine() -> None:
    site = Site("here", probe_timeout=5.0)
    for entry in COLLECTORS:
        collector = entry.make(site)
        accepted, rejected = accept(readings_in(collector.collect(datetime.now(UTC))))
        assert rejected == 0
        assert accepted or entry.name not in ("host", "mount"), "every machine has these"
        if hasattr(collector, "close"):
            collector.close()
