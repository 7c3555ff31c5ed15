"""Tiers, FUSE connections and the small file that is written: what a mount's reading holds beside its size."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Reading, Site
from exporters.sources.procfs import Mount
from exporters.sources.storage import fuse, probes
from exporters.sources.storage.fuse import Connection
from exporters.sources.storage.mounts import Prober, writes
from exporters.sources.storage.probes import ThreadProbes, Written
from exporters.sources.storage.tiers import tier
from exporters.storage.fuse_waits import FuseWaits
from exporters.storage.mounts import MountCollector, written_to
from pipeline.settings import AgentSettings

FIXTURES = Path(__file__).parents[1] / "fixtures"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def mount(kind: str, source: str = "x", device: str = "0:60", point: str = "/m", read_only: bool = False) -> Mount:
    return Mount(point, source, kind, device, read_only)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (mount("tmpfs"), "memory"),
        (mount("nfs4"), "remote"),
        (mount("lustre"), "remote"),
        (mount("fuse.sshfs"), "remote"),
        (mount("fuse.juicefs"), "object"),
        (mount("fuse", "s3fs"), "object"),
        (mount("ext4", "/dev/sda2", "8:2"), "ssd"),
        (mount("xfs", "/dev/sdb1", "8:17"), "hdd"),
        (mount("btrfs", "/dev/sdb1", "0:33"), None),  # the fixture has no class/block; a live machine has
        (mount("overlay"), None),
        (mount("fuse.mine"), None),
    ],
)
def test_a_tier_follows_from_the_type_or_from_the_disk_and_is_absent_where_neither_tells(what: Mount, expected: str | None) -> None:
    assert tier(what, FIXTURES / "sys") == expected


def test_a_file_system_without_a_device_number_of_its_own_has_the_tier_of_its_device_file(tmp_path: Path) -> None:
    (tmp_path / "class/block/sdb1").mkdir(parents=True)
    (tmp_path / "class/block/queue").mkdir()
    (tmp_path / "class/block/queue/rotational").write_text("1\n")
    assert tier(mount("btrfs", "/dev/sdb1", "0:33"), tmp_path) == "hdd"


def test_a_connection_is_that_of_the_mounts_device_and_absent_where_the_kernel_shows_none() -> None:
    assert fuse.connection(mount("fuse.juicefs"), FIXTURES / "sys") == Connection("60", 3, True)
    assert fuse.connection(mount("fuse.juicefs", device="0:61"), FIXTURES / "sys") is None
    assert fuse.connection(mount("ext4"), FIXTURES / "sys") is None


@given(st.binary(max_size=60), st.sampled_from(["0:60", ":", "a:b", "0:99999999999999999999", "\u00b2:1", ""]))
def test_any_bytes_in_the_kernels_files_give_a_tier_or_none_and_never_an_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, device: str
) -> None:
    sys = tmp_path_factory.getbasetemp() / "tiers"
    for place in ("fs/fuse/connections/60", "dev/block/0:60/queue"):
        (sys / place).mkdir(parents=True, exist_ok=True)
    (sys / "fs/fuse/connections/60/waiting").write_bytes(junk)
    (sys / "dev/block/0:60/queue/rotational").write_bytes(junk)
    for kind in ("fuse", "ext4", "fuse.juicefs"):
        tier(mount(kind, junk.decode("latin-1"), device), sys), fuse.connection(mount(kind, "x", device), sys)


def test_requests_that_wait_are_stalled_from_the_look_at_which_they_first_did_until_they_become_fewer() -> None:
    waits = FuseWaits()
    seen = [
        waits.stalled({"/m": number}, at)["/m"] for at, number in ((0, 0), (10, 3), (20, 3), (30, 5), (40, 4), (50, 4), (60, 0), (70, 1))
    ]
    assert seen == [0, 0, 10, 20, 0, 10, 0, 0]
    waits.stalled({}, 80)
    assert waits.stalled({"/m": 1}, 90) == {"/m": 0}, "it was away meanwhile"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), max_size=30))
def test_a_stall_never_lasts_longer_than_what_was_looked_at(looks: list[tuple[int, int]]) -> None:
    waits, first = FuseWaits(), looks[0][1] if looks else 0
    at = 0
    for number, apart in looks:
        at += apart
        (stalled,) = waits.stalled({"/m": number}, at).values()
        assert 0 <= stalled <= at - first and (number or not stalled)


# --- the small file --------------------------------------------------------------------------


def test_a_folder_is_written_to_on_the_nearest_mount_above_it_and_never_on_a_read_only_one() -> None:
    settings = AgentSettings(probe_paths=(Path("/data/ckpt"), Path("/database"), Path("/ro/x")))
    there = [mount("ext4", point="/"), mount("ext4", point="/data"), mount("ext4", point="/ro", read_only=True)]
    assert written_to(settings, there) == {"/data/ckpt": "/data", "/database": "/"}
    assert written_to(AgentSettings(), there) == {}, "none is named, none is written to"


def test_the_file_is_written_read_back_and_gone_also_where_an_earlier_one_was_left(tmp_path: Path) -> None:
    left = tmp_path / f".surefoot-probe-{os.uname().nodename}"
    left.write_text("from a probe that was killed")
    ways = writes()
    prober = Prober(ways, 30.0)
    try:
        found = prober.probe([str(tmp_path), str(tmp_path / "absent")])
    finally:
        prober.close()
    done = found[str(tmp_path)]
    assert done.ok and isinstance(done.found, Written) and min(done.found) >= 0 and sum(done.found) <= (done.seconds or 0)
    assert (found[str(tmp_path / "absent")].ok, found[str(tmp_path / "absent")].errno) == (False, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_files_place_is_replaced_and_what_it_led_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / f".surefoot-probe-{os.uname().nodename}").symlink_to(tmp_path / "precious")
    probes.write(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["precious"] and (tmp_path / "precious").read_text() == "kept"


def test_a_full_device_is_told_by_its_error_number() -> None:
    def full(_: str) -> Written:
        raise OSError(28, "No space left on device")

    probe = Prober(ThreadProbes(full), 30.0).probe(["/m"])["/m"]
    assert (probe.ok, probe.errno, probe.found) == (False, 28, None)


def written(site: Site, ways: Callable[[str], Written], seconds: list[int]) -> list[float | None]:
    """`mount.write.ok` of the folder's mount, at passes so many seconds after the first."""
    mine = MountCollector(replace(site, writes=lambda: ThreadProbes(ways)))
    passes = [[r for r in mine.collect(AT + timedelta(seconds=s)) if isinstance(r, Reading)] for s in seconds]
    mine.close()
    return [next(r.values["mount.write.ok"] for r in one if r.identity["mount_point"] == "/mnt/big data") for one in passes]


def test_a_folder_is_written_to_once_in_its_interval_and_at_every_pass_while_it_fails(site: Site) -> None:
    answers = iter([True, False, False, True])

    def sometimes(_: str) -> Written:
        if not next(answers):
            raise OSError(5, "Input/output error")
        return Written(0, 0, 0, 0)

    assert site.settings.probe_interval == 30
    assert written(site, sometimes, [0, 10, 20, 30, 40, 50, 60]) == [1, None, None, 0, 0, 1, None]


def test_a_mount_that_does_not_answer_is_not_written_to(make_site: Callable[..., Site]) -> None:
    def gone(path: str) -> probes.Usage:
        if path == "/mnt/big data":
            raise OSError(116, "Stale file handle")
        return probes.Usage(1, 1, 1, 1)

    def never(_: str) -> Written:
        raise AssertionError("it was written to")

    assert written(make_site(gone), never, [0, 30]) == [None, None]


def test_what_the_settings_say_of_a_tier_counts_and_nothing_else_is_a_tier() -> None:
    assert AgentSettings(tiers={"/m": "hdd"}).tiers == {"/m": "hdd"}
    with pytest.raises(ValueError):
        AgentSettings(tiers={"/m": "fast"})  # type: ignore[dict-item]
