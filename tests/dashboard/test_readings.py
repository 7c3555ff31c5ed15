"""Readings in the words of people; expectations worked out by hand."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard import readings
from pipeline.catalog.metrics import BY_NAME, FAMILIES, Kind
from pipeline.queries.node_readings import DeviceNow, LastValue
from pipeline.sizes import size

NOW = datetime(2026, 11, 30, 14, 3, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("metric", "value", "said"),
    [
        ("host.memory.available", 212e9, "212 GB"),
        ("host.memory.total", 1.082e12, "1.08 TB"),
        ("host.load1", 3.456, "3.46"),
        ("host.cpu.count", 192.0, "192"),
        ("host.cpu.busy", 7500.0, "2 h 05 min"),
        ("host.boot", 1.7e9, "2023-11-14 22:13:20 UTC"),
        ("mount.read_only", 1.0, "yes"),
        ("mount.probe.ok", 0.0, "no"),
        ("mount.probe.time", 0.0124, "12 ms"),
        ("mount.probe.time", 0.0004, "0.4 ms"),
        ("host.pressure.memory.full", 0.0, "0 s"),
        ("mount.inodes", 12_345_678.0, "12,345,678"),
    ],
)
def test_an_amount_is_said_with_its_unit(metric: str, value: float, said: str) -> None:
    assert readings.amount(BY_NAME[metric][1], value) == said


@pytest.mark.parametrize(
    ("metric", "a_second", "said"),
    [
        ("disk.read", 1.25e9, "1.25 GB/s"),
        ("disk.io.time", 0.4217, "42.1 %"),
        ("host.cpu.busy", 12.5, "12.50 s a second"),
        ("disk.reads", 340.0, "340 a second"),
        ("host.oom_kills", 0.25, "0.25 a second"),
    ],
)
def test_a_rate_is_said_as_what_passes_in_a_second(metric: str, a_second: float, said: str) -> None:
    assert readings.rate(BY_NAME[metric][1], a_second) == said


def test_bytes_are_said_in_powers_of_a_thousand() -> None:
    assert [size(v) for v in (0, 999, 999.6, 1500, 2e15)] == ["0 B", "999 B", "1 kB", "1.5 kB", "2 PB"]


def test_a_value_older_than_its_devices_last_reading_says_so_and_what_was_never_read_is_a_dash() -> None:
    def text(metric: str) -> str:
        return " ".join(re.sub(r"<[^>]*>", " ", readings.cell(BY_NAME[metric][1], device, NOW)).split())

    at, old = NOW - timedelta(seconds=3), NOW - timedelta(seconds=42)
    values = {"mount.free": LastValue(5e9, old), "mount.probe.ok": LastValue(0.0, at), "disk.read": LastValue(2e9, at, 1e6)}
    device = DeviceNow("mount", "/data", {}, at, values)
    assert text("mount.free") == "5 GB read 42 s ago"
    assert text("mount.probe.ok") == "no"
    assert text("disk.read") == "1 MB/s"
    assert text("mount.size") == "-"


@pytest.mark.parametrize("metric", [m for f in FAMILIES for m in f.metrics], ids=lambda m: m.name)
def test_every_metric_of_the_catalogue_can_be_said(metric: object) -> None:
    from pipeline.catalog.metrics import Metric

    assert isinstance(metric, Metric)
    for value in (0.0, 1.0, 0.5, 1.9e9):
        assert readings.amount(metric, value)
    assert readings.name(metric) and "since 1970" not in readings.help_of(metric)
    if metric.kind is Kind.COUNTER:
        assert readings.rate(metric, 0.5)
