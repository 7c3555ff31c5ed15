"""The rules about storage over readings as an agent sends them: what raises a fault, at which reading, and what ends it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alerts.detectors import fault_rule
from alerts.snapshot import Snapshot
from alerts.watch import Watch
from alerts.watched import Watched
from pipeline.catalog.events import IO_ERROR
from pipeline.catalog.metrics import CACHE, DISK, DISK_HEALTH, HOST, LUSTRE_TARGET, MOUNT, QUOTA, REGION_LINK, VOLUME, Family
from pipeline.records import Event, FindingTransition
from pipeline.settings import Settings

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
INTERVAL = 10.0
NAMES = {
    "mount": "mount_point",
    "lustre_target": "target",
    "volume": "claim",
    "region_link": "link",
    "disk_health": "disk",
    "quota": "folder",
}


class Rows:
    """A store that holds one device's readings and its node's events."""

    def __init__(self, family: Family, device: str) -> None:
        self.family = family
        self.labels = {NAMES.get(family.name, family.name): device, "type": "ext4"}
        self.readings: list[dict[str, Any]] = []
        self.events: list[Event] = []

    def add(self, at: datetime, values: Mapping[str, float | None]) -> None:
        told = {f"{self.family.name}.{name}": value for name, value in values.items()}
        assert told.keys() <= {m.name for m in self.family.metrics}
        self._put(self.family, 2, at, [told.get(m.name) for m in self.family.metrics])

    def host(self, at: datetime) -> None:
        self._put(HOST, 1, at, [None] * len(HOST.metrics))

    def other(self, at: datetime) -> None:
        """Another device of the family, which is well."""
        self._put(self.family, 3, at, [None] * len(self.family.metrics))

    def _put(self, family: Family, number: int, at: datetime, values: list[float | None]) -> None:
        self.readings.append({"family": family.name, "device_id": number, "node": "a", "ts": at, "readings": json.dumps(values)})

    def query(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if "DISTINCT family" in text:
            return [{"family": name} for name in {r["family"] for r in self.readings}]
        if "FROM devices" in text:
            return [{"device_id": 2, "attrs": self.labels}, {"device_id": 3, "attrs": dict.fromkeys(self.labels, "other")}]
        if "min(ts)" in text:
            return []
        mine = [r for r in self.readings if r["family"] == parameters["family"]]
        return [r for r in mine if parameters["since"] < r["ts"] <= parameters["until"]]

    def read(self, _: type, text: str, parameters: dict[str, Any]) -> list[Event]:
        return [e for e in self.events if e.kind in parameters["kinds"] and parameters["since"] < e.at <= parameters["until"]]


def raised(family: Family, device: str, readings: Sequence[Mapping[str, float | None]], apart: float = INTERVAL) -> list[list[str]]:
    """The faults that are there after each reading; all of them name the device."""
    rows, found = Rows(family, device), []
    watch = Watch(rows, INTERVAL)  # type: ignore[arg-type]
    for n, values in enumerate(readings):
        at = NOW + timedelta(seconds=n * apart)
        rows.add(at, values)
        standings = watch.look(at + timedelta(seconds=1), n * apart, fresh=True, news=False).raised
        assert {s.place.value for s in standings} <= {device}
        found.append(sorted({s.rule.fault.name for s in standings}))
    return found


def when(family: Family, device: str, *readings: Mapping[str, float | None]) -> tuple[list[str], list[int]]:
    """Which fault was there, and after which of the readings."""
    found = raised(family, device, readings)
    return sorted({fault for one in found for fault in one}), [n for n, one in enumerate(found) if one]


def same(number: int, **values: float) -> list[dict[str, float | None]]:
    return [dict(values)] * number


def test_a_disk_with_a_few_odd_commands_is_well_and_one_whose_errors_jump_fails_until_they_stop() -> None:
    assert when(DISK, "sda", *({"errors": n} for n in (31, 31, 34, 34, 38, 42))) == ([], [])
    assert when(DISK, "sda", *({"errors": n} for n in (31, 31, 36, 36, 36, 36, 36))) == (["disk_failing"], [2, 3, 4])


def test_a_disk_that_was_bad_for_ever_is_no_news() -> None:
    assert when(DISK, "sda", *same(3, errors=5000)) == ([], [])
    assert when(DISK_HEALTH, "nvme0n1", *same(3, media_errors=12, wear=1.03)) == ([], [])


def test_a_disk_that_goes_offline_fails_at_the_second_reading_and_is_well_again() -> None:
    assert when(DISK, "nvme0n1", {"online": 1}, *same(2, online=0), *same(2, online=1)) == (["disk_failing"], [2, 3])
    assert when(DISK, "nvme0n1", {"online": 1}, {"online": 0}, {"online": 1}) == ([], []), "a controller that is reset"


def test_new_media_errors_fail_a_disk_and_so_does_its_own_word() -> None:
    assert when(DISK_HEALTH, "nvme0n1", {"media_errors": 12}, {"media_errors": 13}) == (["disk_failing"], [1])
    assert when(DISK_HEALTH, "nvme0n1", *same(2, degraded=1)) == (["disk_failing"], [1])
    worn = [{"wear": 0.98}, *same(2, wear=1.0)]
    assert when(DISK_HEALTH, "nvme0n1", *worn) == (["disk_failing"], [2]), "its rated endurance is used up now"


@pytest.mark.parametrize(
    ("errno", "fault"), [(28, "filesystem_full"), (122, "filesystem_full"), (30, "filesystem_read_only"), (116, "mount_stale_or_gone")]
)
def test_a_write_that_fails_is_the_fault_that_its_error_names(errno: int, fault: str) -> None:
    bad, good = {"write.ok": 0, "write.time": 0.1, "write.errno": errno}, {"write.ok": 1, "write.errno": 0}
    assert when(MOUNT, "/m", bad, bad, good, good) == ([fault], [1, 2])


def test_a_write_that_fails_with_another_error_is_no_fault_of_the_mounts() -> None:
    assert when(MOUNT, "/m", *[{"write.ok": 0, "write.time": 0.1, "write.errno": 2}] * 3) == ([], [])


def test_requests_that_wait_for_a_minute_are_a_hung_mount_only_where_its_server_cannot_be_asked() -> None:
    waits = [{"probe.ok": 1, "probe.time": 0.001, "fuse.waiting": 3, "fuse.stalled": s, "size": 0} for s in (40, 50, 60)]
    assert when(MOUNT, "/home/x/mnt", *waits) == (["mount_hung"], [2])
    assert when(MOUNT, "/home/x/mnt", *({**one, "size": 1e9} for one in waits)) == ([], [])


def test_a_target_that_is_not_connected_hangs_what_lies_there_and_one_that_is_full_is_full() -> None:
    assert when(LUSTRE_TARGET, "w-OST0001", {"connected": 1}, *same(2, connected=0), *same(2, connected=1)) == (["mount_hung"], [2, 3])
    assert when(LUSTRE_TARGET, "w-OST0001", *same(2, size=1e9, free=1e7)) == (["filesystem_full"], [1])


def test_a_claims_volume_that_is_full_or_unwell_is_told_by_its_claim() -> None:
    assert when(VOLUME, "ml/checkpoints", *same(2, size=1000, free=0)) == (["filesystem_full"], [1])
    assert when(VOLUME, "ml/checkpoints", *same(2, inodes=1000, inodes_free=0)) == (["filesystem_full"], [1])
    assert when(VOLUME, "ml/dataset", *same(2, healthy=0)) == (["mount_stale_or_gone"], [1])


def test_a_quota_that_is_nearly_spent_is_told_before_writes_fail_and_one_without_a_limit_is_not() -> None:
    spent, eased = {"used": 980, "limit": 1000}, {"used": 949, "limit": 1000}
    assert when(QUOTA, "/ckpt", *same(2, **spent), *same(2, **eased)) == (["filesystem_full"], [1, 2])
    assert when(QUOTA, "/ckpt", *same(2, files=99, **{"files.limit": 100})) == (["filesystem_full"], [1])
    assert when(QUOTA, "/ckpt", *same(3, used=980, files=99)) == ([], [])


def test_a_cache_that_loses_workers_whose_store_fails_or_whose_controller_complains_is_a_fault() -> None:
    lost = [{"workers": 15, "workers.lost": 0}, *[{"workers": 14, "workers.lost": 1}] * 2]
    assert when(CACHE, "alluxio/a", *lost) == (["cache_layer_fault"], [2])
    assert when(CACHE, "juicefs/train", *({"store.errors": n} for n in (0, 3, 6, 9, 12))) == ([], []), "a few are tried again"
    assert when(CACHE, "juicefs/train", *({"store.errors": n} for n in (0, 20, 40, 60))) == (["cache_layer_fault"], [3])
    assert when(CACHE, "fluid/ml/x", *({"faults": n} for n in (1, 2, 3))) == (["cache_layer_fault"], [2])


def test_a_backlog_that_grows_for_a_minute_lags_and_one_that_is_worked_off_does_not() -> None:
    grows = [{"backlog": 100 + n} for n in range(8)]
    assert when(REGION_LINK, "minio", *grows) == (["cross_region_lag"], [6, 7])
    assert when(REGION_LINK, "minio", *({"backlog": n} for n in (9, 10, 11, 5, 6, 7, 2, 3, 4))) == ([], [])
    assert when(REGION_LINK, "minio/eu", *same(3, online=0)) == (["cross_region_lag"], [2])


@pytest.mark.parametrize(
    ("code", "disk", "times", "fails"),
    [
        ("medium", "sda", 1, True),
        ("controller", "nvme0n1", 1, True),
        ("io", "sda", 1, True),
        ("timeout", "nvme0n1", 2, False),
        ("timeout", "nvme0n1", 3, True),
        ("target", "sda", 5, False),
        ("io", "sr0", 5, False),
    ],
)
def test_what_the_kernel_says_of_a_disk_fails_it_but_for_a_command_unknown_to_it(code: str, disk: str, times: int, fails: bool) -> None:
    rows = Rows(DISK, disk)
    rows.host(NOW)
    for n in range(times):
        what: dict[str, Any] = {"kind": IO_ERROR.name, "layer": "storage", "severity": "error", "node": "a", "code": code}
        rows.events.append(Event(id=f"e{n}", at=NOW + timedelta(seconds=n + 1), message="the line", attrs={"disk": disk}, **what))
    watch = Watch(rows, INTERVAL)  # type: ignore[arg-type]
    found = watch.look(NOW + timedelta(seconds=20), 20, fresh=True, news=True).raised
    assert [(s.rule.fault.name, s.place.value) for s in found] == ([("disk_failing", disk)] if fails else [])


def test_a_disk_that_was_pulled_is_over_on_a_node_without_any_nvme_and_one_whose_family_is_silent_is_not() -> None:
    rows = Rows(DISK, "sda")
    watch = Watch(rows, INTERVAL)  # type: ignore[arg-type]

    def look(n: int) -> Watched:
        return watch.look(NOW + timedelta(seconds=n * INTERVAL + 1), n * INTERVAL, fresh=True, news=False)

    for n in range(2):
        rows.add(NOW + timedelta(seconds=n * INTERVAL), {"online": 0})
        seen = look(n)
    (verdict,) = fault_rule.detect(Snapshot(now=NOW, detect=Settings().detect, watched=seen), NOW)
    said: dict[str, Any] = {"old_state": "", "new_state": "open", "reason": "", "actor": "x", "at": NOW, "finding": "f", "key": verdict.key}
    said |= {"detector": "fault_rule", "fault": "disk_failing", "layer": "storage", "severity": "error", "node": "a"}
    finding = FindingTransition(**said)
    for n in range(2, 6):
        rows.host(NOW + timedelta(seconds=n * INTERVAL))
    silent = look(6)
    assert fault_rule.clears(finding, Snapshot(now=NOW, detect=Settings().detect, watched=silent), NOW) is None
    for n in range(7, 10):
        rows.other(NOW + timedelta(seconds=n * INTERVAL))
        seen = look(n)
    assert fault_rule.clears(finding, Snapshot(now=NOW, detect=Settings().detect, watched=seen), NOW) == "it is no longer there"
