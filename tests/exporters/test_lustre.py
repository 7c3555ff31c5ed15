"""The Lustre client's parameters against values calculated by hand; the layout is that of the Lustre manual (LustreProc)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Site
from exporters.sources.storage import lustre
from exporters.storage.lustre import LustreCollector
from pipeline.clock import utcnow

FIXTURES = Path(__file__).parents[1] / "fixtures"
STATS = "read_bytes 2 samples [bytes] 1 9 10\nwrite_bytes 3 samples [bytes] 1 9 20 400\nopen 4 samples [regs]\n"


def client(root: Path, kind: str, name: str, **files: str) -> None:
    folder = root / kind / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)


def test_a_target_that_is_connected_one_that_is_idle_and_one_that_is_not_are_told_apart(proc: Path) -> None:
    found = {t.name: t for t in lustre.targets(proc, FIXTURES / "sys")}
    assert {name: (t.state, t.connected) for name, t in found.items()} == {
        "work-MDT0000": ("IDLE", True),
        "work-OST0000": ("FULL", True),
        "work-OST0001": ("DISCONN", False),
    }
    assert (found["work-OST0001"].timeouts, found["work-OST0001"].connects, found["work-OST0001"].wait) == (5, 17, pytest.approx(0.09))
    assert (found["work-OST0000"].size, found["work-OST0000"].free) == (1_000_000 * 1024, 250_000 * 1024)
    assert found["work-OST0001"].size is None, "it cannot be asked"


def test_older_clients_keep_everything_under_proc(tmp_path: Path) -> None:
    root = tmp_path / "proc/fs/lustre"
    client(root, "llite", "old-ffff880414c43400", stats=STATS)
    client(root, "osc", "old-OST0003-osc-ffff880414c43400", **{"import": "import:\n    state: EVICTED\n    rpcs:\n       inflight: 3\n"})
    (one,) = lustre.file_systems(tmp_path / "proc", tmp_path / "sys")
    assert (one.name, one.read, one.written, one.calls) == ("old", 10, 20, {"read_bytes": 2, "write_bytes": 3, "open": 4})
    (target,) = lustre.targets(tmp_path / "proc", tmp_path / "sys")
    assert (target.connected, target.in_flight, target.wait) == (False, 3, None)


def test_a_file_system_that_is_mounted_twice_is_one_with_both_counts(tmp_path: Path) -> None:
    for instance in ("ffff880000000001", "ffff880000000002"):
        client(tmp_path / "fs/lustre", "llite", f"my-work-{instance}", stats=STATS)
    (one,) = lustre.file_systems(tmp_path / "none", tmp_path)
    assert (one.name, one.read, one.calls["open"]) == ("my-work", 20, 8)


def test_a_machine_without_lustre_has_no_readings(tmp_path: Path) -> None:
    assert list(LustreCollector(Site("n", tmp_path, sys=tmp_path)).collect(utcnow())) == []


@given(st.binary(max_size=300))
def test_any_bytes_give_values_or_none_and_never_an_error(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "lustre"
    for place, files in (("llite/w-1", ["stats"]), ("osc/w-OST0000-osc-1", ["import", "kbytestotal", "kbytesavail"])):
        (root / "fs/lustre" / place).mkdir(parents=True, exist_ok=True)
        for file in files:
            (root / "fs/lustre" / place / file).write_bytes(junk)
    assert len(list(LustreCollector(Site("n", root, sys=root)).collect(utcnow()))) == 2
