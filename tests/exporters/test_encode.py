"""Readings on the wire and on the page, read back by the parsers of others."""

import math
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, ScopeMetrics
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading, Table
from exporters.encode import Accepted, Arranger, PageText, accept, prometheus_name, prometheus_text
from exporters.labels import clean
from exporters.sending.metrics import DEVICES, MetricMessages
from pipeline.catalog.metrics import DISK, FAMILIES, MOUNT, Kind, Metric

AT = datetime(2026, 11, 30, 12, 0, 0, 5, tzinfo=UTC)
BOOT = 1_796_027_825.0


def mount(point: str = "/", **values: float | int | None) -> Reading:
    return Reading(
        MOUNT, {"node": "n", "mount_point": point, "source": "/dev/a"}, {f"mount.{k.replace('__', '.')}": v for k, v in values.items()}
    )


def disk(name: str, reads: int, seconds: float) -> Reading:
    return Reading(DISK, {"node": "n", "disk": name}, {"disk.reads": reads, "disk.read.time": seconds}, since=BOOT)


def page(*readings: Reading) -> dict[tuple[str, str], float]:
    """(series name, mount point or disk) -> value, as Prometheus' own parser reads the page."""
    families = text_string_to_metric_families(prometheus_text(accept(readings)[0]))
    return {(s.name, s.labels.get("mount_point") or s.labels["disk"]): s.value for f in families for s in f.samples}


def scopes(*encoded: bytes) -> list[ScopeMetrics]:
    return [ScopeMetrics.FromString(data) for data in encoded]


def test_the_page_holds_the_readings_values_with_their_kinds() -> None:
    readings = [mount("/", size=2**62, free=0, read_only=1, probe__time=0.25), disk("sda", 7, 1.5)]
    assert page(*readings) == {
        ("surefoot_mount_size_bytes", "/"): float(2**62),
        ("surefoot_mount_free_bytes", "/"): 0.0,
        ("surefoot_mount_read_only", "/"): 1.0,
        ("surefoot_mount_probe_time_seconds", "/"): 0.25,
        ("surefoot_disk_reads_total", "sda"): 7.0,
        ("surefoot_disk_read_time_seconds_total", "sda"): 1.5,
    }
    kinds = {f.name: f.type for f in text_string_to_metric_families(prometheus_text(accept(readings)[0]))}
    assert kinds["surefoot_disk_reads"] == "counter" and kinds["surefoot_mount_size_bytes"] == "gauge"


def test_absent_is_left_out_and_not_zero() -> None:
    assert page(mount("/", size=None, free=5)) == {("surefoot_mount_free_bytes", "/"): 5.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("read_only", 2),
        ("read_only", 0.5),
        ("size", -1),
        ("size", 2**63),
        ("probe__time", -0.1),
        ("probe__time", float("nan")),
        ("probe__time", float("inf")),
    ],
)
def test_a_value_that_cannot_be_is_rejected_alone_and_counted(name: str, value: float) -> None:
    accepted, rejected = accept([mount("/", **{name: value, "free": 5})])
    assert rejected == 1
    assert [(m.name, v) for m, v in accepted[0].values] == [("mount.free", 5)]


def test_a_name_that_the_family_does_not_know_is_not_sent() -> None:
    accepted, rejected = accept([mount("/", free=5)._replace(values={"mount.free": 5, "mount.fre": 6})])
    assert rejected == 1 and len(accepted[0].values) == 1


def test_a_second_reading_of_one_device_is_rejected() -> None:
    accepted, rejected = accept([mount("/", free=5), mount("/", free=6, size=7)])
    assert rejected == 2
    assert page(mount("/", free=5), mount("/", free=6)) == {("surefoot_mount_free_bytes", "/"): 5.0}
    assert len(accepted) == 1


def test_a_reading_without_its_identity_is_rejected() -> None:
    assert accept([Reading(DISK, {"node": "n"}, {"disk.reads": 1})]) == ([], 1)


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=[])), min_size=1, max_size=5, unique_by=clean))
def test_no_label_whatever_it_holds_loses_another_series(points: list[str]) -> None:
    readings = [mount(point, free=n) for n, point in enumerate(points)]
    accepted, rejected = accept([*readings, disk("sda", 1, 1.0)])
    text = prometheus_text(accepted)
    text.encode("utf-8")
    assert rejected == 0
    seen = [(s.labels.get("mount_point"), float(s.value)) for f in text_string_to_metric_families(text) for s in f.samples]
    assert sorted(map(repr, seen)) == sorted(
        map(repr, [*((clean(point), float(n)) for n, point in enumerate(points)), (None, 1.0), (None, 1.0)])
    )
    assert len(text.splitlines()) == len(text.split("\n")) - 1, "something splits lines that is no newline"
    (encoded,) = MetricMessages().encode(accepted[: len(points)], AT)
    attributes = {
        kv.value.string_value
        for m in scopes(encoded)[0].metrics
        for p in m.gauge.data_points
        for kv in p.attributes
        if kv.key == "mount_point"
    }
    assert attributes == {clean(point) for point in points}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('exp "70B"\u2028x', 'exp "70B"\\u2028x'),
        ("a\nb\0", "a\\x0ab\\x00"),
        ("x\udcff", "x\\udcff"),
        ("plain / text é", "plain / text é"),
        ("y" * 2000, "y" * 1024),
    ],
)
def test_unsafe_characters_become_visible_escapes(given: str, shown: str) -> None:
    assert clean(given) == shown


def test_otlp_points_carry_unit_kind_start_time_and_value() -> None:
    encoded = MetricMessages().encode(accept([disk("sda", 7, 1.5), mount("/", free=3, probe__time=0.5)])[0], AT)
    (scope,) = scopes(*encoded)
    metrics = {m.name: m for m in scope.metrics}
    reads = metrics["disk.reads"]
    assert reads.unit == "1" and reads.sum.is_monotonic and reads.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = reads.sum.data_points
    assert (point.as_int, point.time_unix_nano, point.start_time_unix_nano) == (7, 1_796_040_000_000_005_000, 1_796_027_825_000_000_000)
    assert {kv.key: kv.value.string_value for kv in point.attributes} == {"node": "n", "disk": "sda"}
    assert metrics["mount.probe.time"].gauge.data_points[0].as_double == 0.5
    assert metrics["mount.free"].gauge.data_points[0].WhichOneof("value") == "as_int"


def test_the_reused_message_gives_what_a_fresh_one_gives_pass_after_pass() -> None:
    reused = MetricMessages()
    passes = [
        [disk("sda", 1, 1.0), disk("sdb", 2, 2.0)],
        [disk("sda", 3, 3.0), disk("sdb", 4, 4.0)],
        [disk("sdb", 5, 5.0)],  # one disk is gone
        [disk("sdb", 6, 6.0), disk("sdc", 7, 7.0)],  # another is there
        [disk("sdb", 8, 8.0)._replace(values={"disk.reads": 8}), disk("sdc", 9, 9.0)],  # a value is absent
        [],
        [disk("sda", 1, 1.0)],
    ]
    for readings in passes:
        accepted = accept(readings)[0]
        assert reused.encode(accepted, AT) == MetricMessages().encode(accepted, AT)


def test_many_devices_are_split_between_and_never_within_devices() -> None:
    accepted = accept([disk(f"d{n}", n, 1.0) for n in range(2 * DEVICES + 1)])[0]
    parts = scopes(*MetricMessages().encode(accepted, AT))
    assert len(parts) == 3
    where: dict[str, set[int]] = {}
    for number, part in enumerate(parts):
        for metric in part.metrics:
            for point in metric.sum.data_points:
                where.setdefault(point.attributes[1].value.string_value, set()).add(number)
    assert len(where) == 2 * DEVICES + 1 and all(len(numbers) == 1 for numbers in where.values())


def test_no_two_metrics_of_the_catalogue_share_a_prometheus_name() -> None:
    names = [prometheus_name(m) for f in FAMILIES for m in f.metrics]
    assert len(set(names)) == len(names)


def test_what_is_no_number_of_no_family_or_not_whole_is_rejected_and_counted_once_each() -> None:
    values = {"disk.reads": math.nan, "disk.writes": 1.5, "disk.read": math.inf, "disk.none": 3, "disk.neither": None, "disk.written": 2.0}
    (reading,), rejected = accept([Reading(DISK, {"node": "n", "disk": "sda"}, values)])
    assert ([(metric.name, value) for metric, value in reading.values], rejected) == ([("disk.written", 2)], 4)


VALUES = st.one_of(
    st.none(), st.integers(0, 9), st.integers(-(2**70), 2**70), st.floats(0, 9), st.floats(), st.booleans(), st.sampled_from([2**63, 1e400])
)
COLUMNS = st.sampled_from(["disk.reads", "disk.read.time", "disk.online", "disk.errors", "disk.unheard_of"])
NAMES = st.sampled_from(["sda", "sdb", "sdc", "a\nb", "a\0b"])


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(st.lists(NAMES, max_size=4))
    columns = draw(st.lists(COLUMNS, unique=True, max_size=4))
    kinds = [draw(st.sampled_from([VALUES, st.integers(0, 1), st.floats(0, 1)])) for _ in columns]
    cells = {name: draw(st.lists(kind, min_size=len(names), max_size=len(names))) for name, kind in zip(columns, kinds, strict=True)}
    attributes = [{"model": draw(NAMES)} for _ in names] if draw(st.booleans()) else []
    return Table(DISK, [("n", name) for name in names], cells, attributes, BOOT)


@given(st.lists(tables(), max_size=2))
def test_a_table_gives_what_a_reading_of_each_of_its_devices_gives(some: list[Table]) -> None:
    assert accept(some) == accept([reading for table in some for reading in table.readings()])


def test_a_table_without_columns_or_devices_is_no_error() -> None:
    assert accept([Table(DISK, [], {"disk.reads": []})]) == ([], 0)
    (reading,), rejected = accept([Table(DISK, [("n", "sda")], {})])
    assert (reading.numbers, rejected) == ((), 0)


def as_protobuf_encodes_it(readings: list[Accepted]) -> bytes:
    """The message with its values in it from the start, by the library alone."""
    scope = ScopeMetrics()
    scope.scope.name = "surefoot.agent"
    by_name: dict[str, list[tuple[Accepted, Metric, float | int]]] = {}
    for reading in readings:
        for metric, value in reading.values:
            by_name.setdefault(metric.name, []).append((reading, metric, value))
    for name, points in by_name.items():
        message = scope.metrics.add(name=name, unit=points[0][1].unit)
        for reading, metric, value in points:
            if metric.kind is Kind.COUNTER:
                message.sum.is_monotonic = True
                message.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
                point = message.sum.data_points.add(start_time_unix_nano=reading.since_ns)
            else:
                point = message.gauge.data_points.add()
            point.time_unix_nano = 1_796_040_000_000_005_000
            if isinstance(value, int):
                point.as_int = value
            else:
                point.as_double = value
            for key, text in reading.labels:
                point.attributes.add(key=key).value.string_value = text
    return scope.SerializeToString()


COUNTS, SECONDS = st.one_of(st.none(), st.integers(0, 2**63 - 1)), st.one_of(st.none(), st.floats(0, sys.float_info.max))
WELL = st.lists(st.tuples(st.text(min_size=1, max_size=5), COUNTS, SECONDS), min_size=1, max_size=6)


@given(st.lists(WELL, min_size=1, max_size=3))
def test_bytes_and_text_put_together_are_those_that_are_made_as_a_whole_pass_after_pass(
    passes: list[list[tuple[str, int | None, float | None]]],
) -> None:
    """The largest values among them, which mark the places of values in a message that is made."""
    arranger = Arranger()
    text, messages = PageText(arranger), MetricMessages(arranger)
    for devices in passes:
        values = [(name, {"disk.reads": n, "disk.read.time": x}) for name, n, x in devices]
        made = [Reading(DISK, {"node": "n", "disk": name}, each, {"model": f"%{name}"}, BOOT) for name, each in values]
        accepted, _ = accept([*made, mount("/", free=5, probe__time=0.5)])
        assert messages.encode(accepted, AT) == [as_protobuf_encodes_it(accepted)]
        by_parser = {
            (s.name, s.labels.get("disk", "")): s.value for f in text_string_to_metric_families(text.of(accepted)) for s in f.samples
        }
        assert by_parser == {
            (prometheus_name(metric), dict(one.labels).get("disk", "")): value for one in accepted for metric, value in one.values
        }


def test_readings_of_several_messages_are_laid_out_once_for_page_and_messages_alike() -> None:
    """Each wants them in other portions, and neither may undo the other's layout."""
    arranger = Arranger()
    text, messages = PageText(arranger), MetricMessages(arranger)
    layouts = []
    for n in range(3):
        accepted, _ = accept([disk(f"sd{device}", n, 1.5) for device in range(DEVICES + 1)])
        text.of(accepted)
        assert messages.encode(accepted, AT) == MetricMessages().encode(accepted, AT)
        layouts.append(arranger.of(accepted)[0])
    assert layouts[0] is layouts[1] is layouts[2]


def test_a_number_beyond_all_floats_costs_no_other_of_its_table() -> None:
    table = Table(DISK, [("n", "sda"), ("n", "sdb")], {"disk.reads": [10**400, 7]})
    found, rejected = accept([table])
    assert [one.numbers for one in found] == [(), (7,)] and rejected == 1
