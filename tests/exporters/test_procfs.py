"""/proc readers against values calculated by hand from the fixture's text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sources import procfs
from exporters.sources.procfs import Cpu, Memory, Mount, Pressure

REAL_DISKSTATS = Path(__file__).parents[2].parent / "shared/data/proc/diskstats"


def test_load_cpu_and_boot_are_what_the_text_says(proc: Path) -> None:
    assert procfs.load1(proc) == 1.25
    # user 1000 + nice 200 + system 300 + irq 60 + softirq 70 + steal 80 ticks at 100 a second; guest is in user
    assert procfs.cpu(proc, 100.0) == Cpu(busy=17.1, iowait=5.0, online=2, boot=1796027825.0)


def test_memory_is_in_bytes(proc: Path) -> None:
    assert procfs.memory(proc) == Memory(16_384_000 * 1024, 8_192_000 * 1024)


def test_pressure_is_in_seconds(proc: Path) -> None:
    assert procfs.pressure(proc, "cpu") == Pressure(2.5, 0.0)
    assert procfs.pressure(proc, "memory") == Pressure(0.75, 0.5)
    assert procfs.pressure(proc, "io") == Pressure(12.0, 6.000001)


def test_oom_kills_and_boot_id_are_read(proc: Path) -> None:
    assert procfs.oom_kills(proc) == 3
    assert procfs.boot_id(proc) == "6c1f0c1e-2f5e-4f4e-9d0b-0123456789ab"


def disks(proc: Path) -> dict[str, tuple[object, ...]]:
    return {row[0]: row for row in zip(*procfs.disks(proc), strict=True)}


def test_a_disk_counts_bytes_by_sectors_of_512_and_times_in_seconds(proc: Path) -> None:
    assert disks(proc)["sda"] == ("sda", 100, 1_048_576, 1.5, 50, 2_097_152, 2.5, 2, 3.6)


def test_a_negative_time_printed_as_a_huge_one_is_absent_and_spares_the_other_counters(proc: Path) -> None:
    assert disks(proc)["nvme0n1"] == ("nvme0n1", 10, 8192, 0.02, 30, 16384, None, 0, 0.04)


def test_disks_of_a_real_machine_are_read_whatever_the_number_of_fields() -> None:
    if not REAL_DISKSTATS.exists():
        pytest.skip(f"no shared test data at {REAL_DISKSTATS}")
    root = REAL_DISKSTATS.parent
    found = disks(root)
    assert len(found) == len(REAL_DISKSTATS.read_text().splitlines())
    # "8 0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 63877960 0 9653880 82621804"
    assert found["sda"] == ("sda", 25354637, 1003346126 * 512, 18492.372, 28444756, 505697032 * 512, 63877.96, 0, 9653.88)
    # with discards (15 fields), and with flushes too (17)
    assert found["sdb"] == ("sdb", 326552, 9657779 * 512, 0.084, 41822, 1972905 * 512, 5.007, 0, 60.73)
    assert found["sdc"] == ("sdc", 126552, 1657779 * 512, 0.014, 11822, 172905 * 512, 1.007, 0, 10.73)


def test_mounts_are_unescaped_and_read_only_on_either_side_counts(proc: Path) -> None:
    found = {m.mount_point: m for m in procfs.mounts(proc)}
    assert found["/mnt/big data"] == Mount("/mnt/big data", "filer:/export/big data", "nfs4", "0:50", False)
    assert found["/scratch"].read_only and not found["/"].read_only
    assert len(found) == 11


def test_of_two_mounts_at_one_place_the_upper_one_is_seen(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text("1 0 8:1 / /m rw - ext4 /dev/a rw\n2 1 8:2 / /m rw - xfs /dev/b rw\n")
    assert procfs.mounts(tmp_path) == [Mount("/m", "/dev/b", "xfs", "8:2", False)]


def test_a_machine_that_tells_nothing_has_no_values_and_not_zeros(tmp_path: Path) -> None:
    assert procfs.load1(tmp_path) is None
    assert procfs.cpu(tmp_path, 100.0) == Cpu(None, None, None, None)
    assert procfs.memory(tmp_path) == Memory(None, None)
    assert procfs.pressure(tmp_path, "io") == Pressure(None, None)
    assert procfs.oom_kills(tmp_path) is None
    assert procfs.boot_id(tmp_path) == ""
    with pytest.raises(OSError):
        procfs.disks(tmp_path)
    with pytest.raises(OSError):
        procfs.mounts(tmp_path)


@given(st.binary(max_size=400))
def test_any_bytes_in_any_file_give_values_or_none_and_never_an_error(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "junk"
    for name in ("loadavg", "stat", "meminfo", "vmstat", "diskstats", "pressure/io", "self/mountinfo", "net/rpc/nfsd"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(junk)
    procfs.load1(root), procfs.cpu(root, 100.0), procfs.memory(root), procfs.pressure(root, "io"), procfs.oom_kills(root)
    procfs.disks(root), procfs.mounts(root), procfs.nfs_server(root)


def test_a_mount_is_read_only_as_process_1_sees_it_not_as_a_sandbox_shows_it_and_always_where_its_file_system_is(tmp_path: Path) -> None:
    def tree(root: str, data: str, own: str = "") -> str:
        return f"1 0 8:1 / / {root} - ext4 /dev/sda1 rw\n2 1 8:2 / /data {data} - ext4 /dev/sdb1 rw\n{own}"

    (tmp_path / "self").mkdir()
    (tmp_path / "1").mkdir()
    own = "3 1 0:9 / /mine rw - tmpfs real ro\n4 1 0:8 / /other ro - tmpfs real rw\n"
    (tmp_path / "self/mountinfo").write_text(tree("ro,nosuid", "ro,nosuid", own))
    assert [m.read_only for m in procfs.mounts(tmp_path)] == [True, True, True, True]
    (tmp_path / "1/mountinfo").write_text(tree("rw", "ro"))
    assert {m.mount_point: m.read_only for m in procfs.mounts(tmp_path)} == {"/": False, "/data": True, "/mine": True, "/other": True}


def test_a_mount_that_changes_is_told_as_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    for options, source, read_only in [("rw", "/dev/a", False), ("rw", "/dev/a", False), ("ro", "/dev/a", True), ("rw", "/dev/b", False)]:
        (tmp_path / "self/mountinfo").write_text(f"1 0 8:1 / /m {options} - ext4 {source} rw\n")
        assert procfs.mounts(tmp_path) == [Mount("/m", source, "ext4", "8:1", read_only)]
