"""Other programs' pages: names, units and devices; what is not known; bounds, ends, starts; who speaks for a device."""

import threading
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exporters.collector import Foreign, Observation, Reading, Site
from exporters.encode import Accepted, accept
from exporters.foreign import NAME_MAPS
from exporters.foreign.series import REMEMBERED, SeriesBook
from exporters.foreign.translate import translate
from exporters.natives import Natives
from exporters.registry import COLLECTORS
from exporters.scrape import ScrapeCollector
from exporters.sending import foreign, wire
from exporters.sources.prometheus_text import Sample, parse
from exporters.sources.scraped import fetch
from pipeline.catalog.metrics import BY_NAME, DISK, HOST
from pipeline.otlp import decode as otlp
from pipeline.settings import AgentSettings, ScrapeSettings

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW = AT.timestamp()
FIXTURES = Path(__file__).parents[1] / "fixtures"
URL = "http://127.0.0.1:9/metrics"


def translated(text: str, given: dict[str, str] | None = None) -> tuple[list[Reading], list[Sample]]:
    return translate(parse(text).samples, NAME_MAPS, given or {"target": "t"}, "node1")


def site(*targets: dict[str, Any], **agent: Any) -> Site:
    return Site("node1", settings=AgentSettings(scrape=tuple(ScrapeSettings(**one) for one in targets), **agent))


def collected(collector: ScrapeCollector, at: datetime = AT) -> tuple[dict[str, Reading], list[Foreign]]:
    observed: list[Observation] = list(collector.collect(at))
    states = {one.identity["target"]: one for one in observed if isinstance(one, Reading) and one.family.name == "scrape"}
    return states, [one for one in observed if isinstance(one, Foreign)]


# --- names -----------------------------------------------------------------------------------


def test_every_map_names_metrics_of_its_family_and_says_how_each_device_is_identified() -> None:
    for one in NAME_MAPS:
        assert {BY_NAME[name.metric][0] for name in one.names} == {one.family}
        assert set(one.family.identity) <= {"node", *one.identity}, one.source


def test_node_exporters_processor_times_are_added_up_by_what_they_mean() -> None:
    page = "".join(
        f'node_cpu_seconds_total{{cpu="{cpu}",mode="{mode}"}} {seconds}\n'
        for cpu in (0, 1)
        for mode, seconds in {"user": 10, "system": 5, "idle": 100, "iowait": 2, "steal": 1, "nice": 0, "irq": 0, "softirq": 0.5}.items()
    )
    (reading,), rest = translated(page + "node_boot_time_seconds 1.7e9\n")
    assert (reading.values["host.cpu.busy"], reading.values["host.cpu.iowait"], reading.since) == (33.0, 4.0, 1.7e9)
    assert {dict(s.labels)["mode"] for s in rest} == {"idle"}, "what has no name of ours stays as it is"


def test_a_partition_is_no_disk_and_stays_as_it_is() -> None:
    readings, rest = translated('node_disk_read_bytes_total{device="nvme0n1"} 4096\nnode_disk_read_bytes_total{device="nvme0n1p1"} 1\n')
    assert [(r.identity, r.values["disk.read"]) for r in readings] == [({"node": "node1", "disk": "nvme0n1"}, 4096)]
    assert [s.value for s in rest] == [1.0]


def test_a_target_may_tell_of_another_node_and_a_name_that_is_none_is_not_taken() -> None:
    (reading,), _ = translated("node_load1 2\n", {"target": "t", "node": "GPU-7"})
    assert reading.identity == {"node": "gpu-7"}
    (reading,), _ = translated("node_load1 2\n", {"target": "t", "node": "a b\0"})
    assert reading.identity == {"node": "node1"}


def test_what_is_not_a_number_is_absent_not_zero() -> None:
    (reading,), _ = translated("node_load1 NaN\nnode_boot_time_seconds 1.7e9\n")
    assert reading.values["host.load1"] is None


def test_an_rdma_port_is_its_device_and_port() -> None:
    (reading,), _ = translated('node_infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"} 4000\n')
    assert (reading.identity, reading.values["rdma_port.received"]) == ({"node": "node1", "port": "mlx5_0:1"}, 4000)


GPU_LABELS = 'gpu="3",UUID="GPU-aa",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100",Hostname="GPU-7"'


def test_dcgms_units_are_brought_to_base_units_and_the_device_is_its_uuid() -> None:
    page = f"""DCGM_FI_DEV_GPU_UTIL{{{GPU_LABELS}}} 57
DCGM_FI_DEV_FB_USED{{{GPU_LABELS}}} 2
DCGM_FI_DEV_SM_CLOCK{{{GPU_LABELS}}} 1980
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU_LABELS}}} 3000000000
DCGM_FI_DEV_XID_ERRORS{{{GPU_LABELS}}} 31
"""
    (reading,), rest = translated(page)
    assert reading.identity == {"node": "gpu-7", "uuid": "GPU-aa"}
    told = {name: value for name, value in reading.values.items() if value is not None}
    assert told == {"gpu.utilization": 0.57, "gpu.memory.used": 2_097_152, "gpu.clock.sm": 1.98e9, "gpu.energy": 3e6}
    assert [s.name for s in rest] == ["DCGM_FI_DEV_XID_ERRORS"], "the last XID for ever is no event"


@pytest.mark.parametrize("blank", [2147483632, 2147483635, 9223372036854775794, 140737488355330])
def test_dcgms_words_for_nothing_are_absent(blank: int) -> None:
    (reading,), _ = translated(f"DCGM_FI_DEV_FB_USED{{{GPU_LABELS}}} {blank}\nDCGM_FI_DEV_GPU_TEMP{{{GPU_LABELS}}} 40\n")
    assert (reading.values["gpu.memory.used"], reading.values["gpu.temperature"]) == (None, 40.0)


def test_a_partitions_readings_are_not_its_gpus() -> None:
    readings, rest = translated(f'DCGM_FI_DEV_FB_USED{{{GPU_LABELS},GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"}} 5\n')
    assert readings == [] and len(rest) == 1


def told(reading: Reading) -> dict[str, float | int]:
    return {name.removeprefix("switch_port."): value for name, value in reading.values.items() if value is not None}


def test_a_switchs_port_is_named_by_the_switch_that_the_target_is_and_its_rate_is_in_bytes() -> None:
    (one, two), rest = translated((FIXTURES / "pages/leaf-01.prom").read_text(), {"target": "leaf-01"})
    assert one.identity == {"node": "node1", "switch": "leaf-01", "port": "Eth1/1"}
    assert told(one) == {
        "state": 1,
        "wanted": 1,
        "rate": 50e9,  # 400 Gb/s
        "received": 9_000_000_000_000,
        "sent": 8_500_000_000_000,
        "received.packets": 1023,  # to one, to many, to all
        "sent.packets": 900,
        "receive_errors": 17,
        "send_errors": 2,
        "receive_discards": 4,
        "send_discards": 5,
    }
    assert (two.identity["port"], told(two)) == ("Eth1/2", {"state": 2, "wanted": 2})
    assert [s.name for s in rest] == ["sysUpTime"]


def test_one_page_may_tell_of_many_switches_each_by_its_own_name() -> None:
    (port,), rest = translated((FIXTURES / "pages/subnet.prom").read_text(), {"target": "subnet"})
    assert port.identity == {"node": "node1", "switch": "leaf-02", "port": "7"}
    assert told(port) == {"rate": 50e9, "received": 4096, "symbol_errors": 31, "link_downs": 2, "link_recoveries": 1, "send_wait": 71}
    assert [s.name for s in rest] == ["infiniband_switch_info"]
    (port,), _ = translated((FIXTURES / "pages/spine.prom").read_text())
    assert (port.identity["switch"], port.identity["port"]) == ("spine-1", "ethernet-1/1")
    assert told(port) == {"crc_errors": 9, "link_downs": 3}, "a link that went down three times came back three times"


# --- series that the catalogue does not know ---------------------------------------------------


def book(text: str, at: float, of: SeriesBook) -> list[Foreign]:
    page = parse(text)
    return of.take(page.samples, page.types, at)


def test_the_targets_own_labels_win_and_what_they_hide_stays() -> None:
    (one,) = book('a{target="x",b="1"} 2\n', NOW, SeriesBook(9, {"target": "t"}))
    assert one.labels == (("b", "1"), ("exported_target", "x"), ("target", "t"))


def test_a_label_that_could_break_a_line_is_made_safe_and_the_others_are_whole() -> None:
    found = book('a{job="exp \\"70B\\"\u2028x\x00"} 1\nb 2\n', NOW, SeriesBook(9, {}))
    assert found[0].labels == (("job", 'exp "70B"\\u2028x\\x00'),) and found[1].value == 2.0


# C27
def test_a_series_that_vanishes_ends_once_and_a_target_that_is_away_ends_all() -> None:
    mine = SeriesBook(9, {})
    book('g{pid="11"} 5\nh 1\n', NOW, mine)
    found = book('g{pid="12"} 3\nh 1\n', NOW + 10, mine)
    assert [(dict(f.labels).get("pid"), f.value) for f in found] == [("12", 3.0), (None, 1.0), ("11", None)]
    assert {f.name for f in mine.lose() if f.value is None} == {"g", "h"} and mine.lose() == []


COUNTER = "# TYPE c_total counter\n"


# C34
def test_a_counter_that_is_new_on_a_page_began_since_the_pass_before_and_an_old_one_nobody_knows_when() -> None:
    mine = SeriesBook(9, {})
    (old,) = book(COUNTER + 'c_total{a="old"} 7340\n', NOW, mine)
    _, new = book(COUNTER + 'c_total{a="old"} 7341\nc_total{a="new"} 1\n', NOW + 10, mine)
    assert (old.since, new.since) == (None, NOW)


# C35
def test_a_counter_that_falls_began_anew_and_keeps_that_start() -> None:
    mine = SeriesBook(9, {})
    starts = [book(f"{COUNTER}c_total {value}\n", NOW + 10 * i, mine)[0].since for i, value in enumerate((5, 1, 2, 2))]
    assert starts == [None, NOW, NOW, NOW]


def test_a_program_that_was_started_anew_may_show_counters_that_are_older_than_it() -> None:
    mine = SeriesBook(9, {})
    book("process_start_time_seconds 100\n", NOW, mine)
    found = book(f"{COUNTER}c_total 7340\nprocess_start_time_seconds 200\n", NOW + 10, mine)
    assert next(f.since for f in found if f.name == "c_total") is None


# C35
def test_open_metrics_says_itself_when_a_counter_began() -> None:
    text = f"# TYPE c counter\nc_total 7\nc_created {NOW - 5}\n# TYPE h histogram\nh_count 2\nh_sum 3\nh_created {NOW - 4}\n# EOF\n"
    found = {f.name: (f.counter, f.since) for f in book(text, NOW, SeriesBook(9, {}))}
    assert found == {"c_total": (True, NOW - 5), "h_count": (True, NOW - 4), "h_sum": (True, NOW - 4)}


# C31
def test_ten_thousand_labels_do_not_cost_memory_for_ever_and_their_places_are_free_again_later() -> None:
    mine = SeriesBook(100, {})
    for run in range(10_000):
        found = book(f'loss{{run="{run}"}} 1\n', NOW + run / 10, mine)
    assert (mine.dropped, [f.value for f in found]) == (9_900, [])
    assert [f.value for f in book('loss{run="new"} 1\n', NOW + 10 + REMEMBERED + 1, mine)] == [1.0]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats()), max_size=6), st.integers(0, 3))
def test_no_page_makes_more_series_than_it_may(samples: list[tuple[str, float]], most: int) -> None:
    mine = SeriesBook(most, {})
    found = mine.take([Sample(name, (), value) for name, value in samples], {}, NOW)
    assert len(found) <= most


def test_what_is_not_known_is_kept_under_its_own_name_with_its_start_and_its_end() -> None:
    series = [
        Foreign("my_loss", (("target", "t"),), 1.5),
        Foreign("c_total", (("target", "t"),), 3.0, counter=True, since=NOW - 5),
        Foreign("gone", (), None),
    ]
    body = wire.metrics_request(wire.resource({"host.name": "node1"}), foreign.encode(series, AT))
    read = otlp.decode(otlp.Signal.METRICS, otlp.ContentType.PROTOBUF, body, AT)
    rows = [(row["metric"], row["ts"], row["value"], row["since"]) for row in read.rows["samples"]]
    assert rows == [("my_loss", AT, 1.5, None), ("c_total", AT, 3.0, AT - timedelta(seconds=5)), ("gone", AT, None, None)]
    kinds = {row["metric"]: (row["kind"], row["labels"]) for row in read.rows["series"]}
    assert kinds["c_total"] == ("counter", {"host.name": "node1", "target": "t"}) and kinds["my_loss"][0] == "gauge"


# --- targets -----------------------------------------------------------------------------------


def test_a_target_that_hangs_costs_itself_and_is_not_asked_again_meanwhile() -> None:
    release, asked = threading.Event(), []

    def answer(url: str, token: str, timeout: float, most: int) -> str:
        asked.append(url)
        if url.endswith("hung"):
            release.wait(30)
        return "up 1\n"

    collector = ScrapeCollector(
        site({"name": "a", "url": URL}, {"name": "b", "url": URL + "/hung", "timeout": 0.2}, interval=0.1), fetch=answer
    )
    for _ in range(3):
        states, series = collected(collector)
        threading.Event().wait(0.11)
        assert (states["a"].values["scrape.ok"], states["b"].values["scrape.ok"]) == (1, 0)
        assert [f.value for f in series if dict(f.labels)["target"] == "a"] == [1.0]
    assert asked.count(URL + "/hung") == 1
    release.set()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (requests.ConnectionError("x"), "scrape target b: x"),
        (zlib.error("incorrect header check"), "scrape target b: error: incorrect header check"),
        (RuntimeError("a defect"), "scrape target b: RuntimeError: a defect"),
        (MemoryError(), "scrape target b: MemoryError: "),
    ],
)
def test_whatever_goes_wrong_with_a_page_is_told_of_its_target_and_costs_no_other_and_it_is_asked_again(
    caplog: pytest.LogCaptureFixture, error: Exception, said: str
) -> None:
    wrong = [error]

    def answer(url: str, token: str, timeout: float, most: int) -> str:
        if url.endswith("bad") and wrong:
            raise wrong.pop()
        return "up 1\n"

    collector = ScrapeCollector(site({"name": "a", "url": URL}, {"name": "b", "url": URL + "/bad"}, interval=0.1), fetch=answer)
    states, _ = collected(collector)
    assert (states["a"].values["scrape.ok"], states["b"].values["scrape.ok"]) == (1, 0)
    assert [record.getMessage() for record in caplog.records] == [said]
    threading.Event().wait(0.11)
    assert collected(collector)[0]["b"].values["scrape.ok"] == 1


def test_a_page_of_which_nothing_can_be_made_fails_its_target_and_not_the_pass() -> None:
    broken: Any = object()  # a map with a defect
    states, series = collected(ScrapeCollector(site({"name": "a", "url": URL}), maps=[broken], fetch=lambda *_: "up 1\n"))
    assert (states["a"].values["scrape.ok"], series) == (0, [])


def test_what_is_said_of_a_target_is_said_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    url = "http://127.0.0.1:1/" + "long/" * 60
    collected(ScrapeCollector(site({"name": "a", "url": url})))
    assert [record.getMessage() for record in caplog.records] == ["scrape target a: does not answer: Connection refused"]


# C06
def test_values_of_a_source_that_died_are_too_old_to_be_believed() -> None:
    old, young, future = ((NOW - 100) * 1000, (NOW - 1) * 1000, (NOW + 61) * 1000)
    page = f"a 1 {old:.0f}\nb 1 {young:.0f}\nc 1 {future:.0f}\nd 1\n"
    states, series = collected(ScrapeCollector(site({"name": "a", "url": URL}), fetch=lambda *_: page))
    assert [f.name for f in series] == ["b", "d"] and states["a"].values["scrape.rejected"] == 2


def test_a_target_with_an_interval_of_its_own_is_left_alone_between() -> None:
    times = [0.0]
    collector = ScrapeCollector(site({"name": "a", "url": URL, "interval": 60}), fetch=lambda *_: "", clock=lambda: times[0])
    told = []
    for second in range(0, 130, 10):
        times[0] = float(second)
        told.append(bool(collected(collector)[0]))
    assert [10 * i for i, one in enumerate(told) if one] == [0, 60, 120]


@pytest.fixture
def page(httpserver: HTTPServer) -> Iterator[Callable[..., str]]:
    def serve(**response: Any) -> str:
        httpserver.expect_request("/metrics").respond_with_data(**response)
        return httpserver.url_for("/metrics")

    yield serve


def test_a_page_is_brought_with_its_token_and_no_more_of_it_than_it_may_have(page: Callable[..., str], tmp_path: Path) -> None:
    url, token = page(response_data="a 1\n" * 100), tmp_path / "token"
    token.write_text("secret\n")
    assert fetch(url, str(token), 5.0, 400) == "a 1\n" * 100
    with pytest.raises(OSError, match="longer than 399 bytes"):
        fetch(url, str(token), 5.0, 399)


def test_the_token_is_sent_and_no_redirect_is_followed(httpserver: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    httpserver.expect_request("/a", headers={"Authorization": "Bearer secret"}).respond_with_data("a 1\n")
    httpserver.expect_request("/b").respond_with_response(Response(status=302, headers={"Location": httpserver.url_for("/a")}))
    assert fetch(httpserver.url_for("/a"), str(tmp_path / "token"), 5.0, 100) == "a 1\n"
    with pytest.raises(OSError, match="status 302"):
        fetch(httpserver.url_for("/b"), str(tmp_path / "token"), 5.0, 100)


def test_nobody_there_a_page_in_no_utf8_and_a_pipe_are_told_in_a_line(page: Callable[..., str], tmp_path: Path) -> None:
    states, _ = collected(ScrapeCollector(site({"name": "a", "url": "http://127.0.0.1:1/metrics"})))
    assert states["a"].values["scrape.ok"] == 0
    assert fetch(page(response_data=b"a\xff 1\n"), "", 5.0, 100) == "a\\xff 1\n"
    with pytest.raises(OSError, match="no regular file"):
        fetch("file:///dev/null", "", 5.0, 100)


def test_a_page_in_a_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "my job.prom"
    collector = ScrapeCollector(site({"name": "a", "url": path.as_uri()}, interval=0.1))
    assert collected(collector)[0]["a"].values["scrape.ok"] == 0
    path.write_text("steps 3\n")
    threading.Event().wait(0.11)
    assert [f.value for f in collected(collector)[1]] == [3.0]


# --- who speaks for a device ---------------------------------------------------------------------


def shown(family: Any, **identity: str) -> Accepted:
    return accept([Reading(family, {"node": "node1", **identity}, {"disk.reads": 1, "host.load1": 1})])[0][0]


def test_where_our_own_collector_reads_a_device_another_programs_word_does_not_count() -> None:
    natives = Natives(COLLECTORS)
    natives.note("disk", [shown(DISK, disk="sda")], until=20.0)
    theirs = [shown(DISK, disk="sda"), shown(DISK, disk="sdb"), shown(HOST)]
    assert natives.without("scrape", theirs, clock=10.0) == theirs[1:]
    assert natives.without("scrape", theirs, clock=21.0) == theirs, "ours is too old to be shown"
    assert natives.without("disk", theirs[:2], clock=10.0) == theirs[:2]


def test_a_family_stands_once_on_the_page() -> None:
    natives = Natives(COLLECTORS)
    natives.note("disk", [shown(DISK, disk="sda")], until=20.0)
    theirs = [shown(DISK, disk="sdb"), shown(HOST)]
    assert natives.own("scrape", theirs, clock=10.0) == theirs[1:]
