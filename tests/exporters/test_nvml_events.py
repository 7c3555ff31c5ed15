"""XIDs from the driver where the kernel's log may not be read, by a library that answers as NVIDIA's."""

import errno
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from exporters.collector import Site
from exporters.kernel.collector import After, KernelCollector, Log
from exporters.kernel.floods import BURST
from exporters.sources.gpu.nvml_events import Told, XidEvents
from exporters.sources.kernel.kmsg import Read
from pipeline.records import Event

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
TWO = """order 0 1
*.nvmlDeviceGetSupportedEventTypes 8
0.nvmlDeviceGetPciInfo_v3 00000000:3B:00.0
1.nvmlDeviceGetPciInfo_v3 00000000:AF:00.0
"""


@pytest.fixture
def scenario(fake_nvml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml))
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "scenario"))
    monkeypatch.setattr(
        "exporters.sources.gpu.nvml_library.installed", lambda: True
    )  # its path is read when a process begins: the child's is
    return tmp_path / "scenario"


@pytest.fixture
def events() -> Iterator[XidEvents]:
    made = XidEvents()
    yield made
    made.close()


def says(scenario: Path, text: str) -> None:
    fresh = scenario.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(scenario)


def taken(events: XidEvents, count: int) -> list[Told]:
    found: list[Told] = []
    end = time.monotonic() + 30
    while len(found) < count and time.monotonic() < end:
        found += events.take()
        time.sleep(0.01)
    return found


def test_each_xid_is_told_once_with_its_gpus_address(scenario: Path, events: XidEvents) -> None:
    says(scenario, TWO + "-1.events 0:79\n")
    assert taken(events, 1) == [Told("00000000:3B:00.0", 79)]
    says(scenario, TWO + "-1.events 0:79 1:94 1:94\n")
    assert taken(events, 2) == [Told("00000000:AF:00.0", 94)] * 2
    time.sleep(0.1)
    assert events.take() == []


def test_where_the_driver_tells_of_no_xids_or_loses_a_gpu_it_is_asked_again_later(scenario: Path) -> None:
    clock = [0.0]
    events = XidEvents(lambda: clock[0])
    says(scenario, TWO.replace("Types 8", "Types 0"))
    end = time.monotonic() + 30
    while time.monotonic() < end and (events.take() or events._child is not None):
        time.sleep(0.01)
    says(scenario, TWO + "-1.events 1:63\n")
    assert events.take() == []
    clock[0] = 30.0
    assert taken(events, 1) == [Told("00000000:AF:00.0", 63)]
    events.close()


def refused(path: Path, after: After) -> Log:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def nowhere(path: Path, after: After) -> Log:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


class Heard(XidEvents):
    """What a driver told, without one."""

    def __init__(self, *told: Told) -> None:
        super().__init__()
        self.told = list(told)

    def take(self) -> list[Told]:
        found, self.told = self.told, []
        return found


@pytest.mark.parametrize("fails", [True, False])
def test_without_the_kernels_log_an_xid_is_the_same_event_and_the_log_is_still_called_unreadable(fails: bool) -> None:
    site = Site("node1", gpus=lambda: {"0000:3b:00.0": "GPU-aa"})
    heard = Heard(Told("00000000:3B:00.0", 79))
    collector = KernelCollector(site, lambda: 100.0, refused if fails else nowhere, heard)
    (event,) = _all(collector, fails)
    assert (event.kind, event.code, event.device, event.severity) == ("xid", "79", "GPU-aa", "critical")
    assert event.message == "NVRM: Xid (PCI:00000000:3B:00.0): 79, told by the driver" and event.attrs["pci"] == "0000:3b:00.0"
    assert _all(collector, fails) == []


def test_what_the_driver_told_says_nothing_of_how_far_a_log_was_read_that_can_be_read_later(tmp_path: Path) -> None:
    """A flood that is still held back when the log's first records are read."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot-a")
    (tmp_path / "kmsg").write_bytes(b"")
    now = [100.0]
    clear = [False]

    def opener(path: Path, after: After) -> Log:
        return Emptied(after(Emptied.cursor)) if clear[0] else refused(path, after)

    collector = KernelCollector(Site("node1", proc=tmp_path), lambda: now[0], opener, Heard(*[Told("00000000:3B:00.0", 79)] * 9))
    assert len(_all(collector, True)) == BURST
    clear[0], now[0] = True, 131.0
    assert list(collector.collect(AT)) == [] and collector.kept()["kernel.sequence"] == 42
    now[0] = 170.0
    (rest,) = collector.collect(AT)
    assert rest.count == 9 - BURST and collector.kept()["kernel.sequence"] == 42


class Emptied:
    """A log of which the last record, the 41st, was read."""

    saved, cursor, source = False, "kernel.sequence", "a log"

    def __init__(self, after: int | None) -> None:
        self.after = 41 if after is None else after

    def read(self) -> Read:
        return Read(())

    def close(self) -> None: ...


def _all(collector: KernelCollector, fails: bool) -> list[Event]:
    found: list[Event] = []
    try:
        found.extend(collector.collect(AT))
        assert not fails
    except PermissionError:
        assert fails, "events that were given before an error count"
    return found
