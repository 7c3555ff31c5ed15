"""The NFS client's counts against values calculated by hand; the layout is that of fs/nfs/super.c and net/sunrpc of Linux."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.encode import accept
from exporters.sources import procfs
from exporters.sources.storage import mountstats
from exporters.sources.storage.mountstats import NfsMount, Operation
from exporters.storage.nfs import NfsCollector
from pipeline.catalog.metrics import BY_NAME

HEAD = "device filer:/x mounted on /x with fstype nfs4 statvers=1.1\n"


def one(text: str) -> NfsMount:
    (found,) = mountstats.parse(HEAD + text)
    return found


# C26
def test_transports_of_nconnect_are_summed_and_the_shortest_idle_time_counts(proc: Path) -> None:
    over = mountstats.mounts(proc)["/mnt/big data"].transports
    assert (over.protocol, over.count, over.connects, over.idle) == ("tcp", 2, 1 + 2, 10)
    assert (over.sends, over.receives, over.bad_xids, over.backlog) == (60 + 40, 59 + 40, 1, 9 + 1)


def test_an_rdma_transport_tells_of_chunks_and_bytes(proc: Path) -> None:
    over = mountstats.mounts(proc)["/mnt/fast"].transports
    assert (over.protocol, over.count, over.connects, over.idle, over.sends, over.receives) == ("rdma", 1, 1, 5, 7, 7)
    assert (over.read_chunks, over.write_chunks, over.reply_chunks) == (11, 12, 13)
    assert (over.requests, over.replies, over.failed_marshals, over.bad_replies) == (1400, 1500, 1, 2)


@pytest.mark.parametrize(
    ("line", "sends", "connects", "backlog"),
    [
        ("udp 711 1 30 29 0 5 2 64 1 1", 30, None, 2),
        ("local 1 4 0 3 30 29 0 5 2 64 1 1", 30, 4, 2),
        ("tcp 711 1 4 0 3 30 29 0 5 2", 30, 4, 2),  # before Linux 3.4 it ends here
    ],
)
def test_each_kind_of_transport_has_its_own_fields(line: str, sends: int, connects: int | None, backlog: int) -> None:
    over = one(f"\txprt:\t{line}\n").transports
    assert (over.count, over.sends, over.connects, over.backlog) == (1, sends, connects, backlog)


# C26
def test_lines_of_eight_and_of_nine_numbers_are_read_and_what_comes_after_them_is_left_alone() -> None:
    read = one(
        "\tper-op statistics\n\tREAD: 10 12 1 100 200 3000 4000 5000\n\tNULL: 1 1 0 44 24 0 0 0 7\n\tWRITE: 1 1 0 44 24 0 0 0 0 9 9\n"
    )
    assert read.operations == [
        Operation("READ", 10, 12, 1, 100, 200, 3.0, 4.0, 5.0, None),
        Operation("NULL", 1, 1, 0, 44, 24, 0.0, 0.0, 0.0, 7),
        Operation("WRITE", 1, 1, 0, 44, 24, 0.0, 0.0, 0.0, 0),
    ]


# C24
def test_a_negative_queue_time_printed_as_a_huge_one_is_absent_counted_and_spares_the_rest() -> None:
    read = one("\tper-op statistics\n\tREAD: 10 10 0 100 200 18446744073709550616 4000 5000 0\n")
    assert read.operations == [Operation("READ", 10, 10, 0, 100, 200, None, 4.0, 5.0, 0)]
    assert read.absurd == 1


def test_requests_that_never_happened_take_no_room() -> None:
    assert one("\tper-op statistics\n\tREAD: 0 0 0 0 0 0 0 0 0\n").operations == []


def test_file_systems_of_other_kinds_and_statistics_of_another_version_are_left_out() -> None:
    text = (
        "device /dev/sda1 mounted on / with fstype ext4\n\tage:\t5\n"
        "device a:/b mounted on /b with fstype nfs4 statvers=2.0\n\tage:\t6\n"
        "device rootfs mounted on / with fstype rootfs\nnonsense\n"
    )
    assert list(mountstats.parse(text)) == []


# C23
def test_the_servers_bytes_are_kept_with_the_32_bits_that_the_kernel_counts_them_in(proc: Path) -> None:
    server = procfs.nfs_server(proc)
    assert server == procfs.NfsServer(4294967290, 123456)
    assert {BY_NAME[name][1].width for name in ("nfs_server.read", "nfs_server.written")} == {32}


def test_a_machine_without_nfs_has_no_readings(tmp_path: Path) -> None:
    from exporters.collector import Site
    from pipeline.clock import utcnow

    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text("1 0 8:1 / / rw - ext4 /dev/a rw\n")
    (tmp_path / "self/mountstats").write_text("device /dev/a mounted on / with fstype ext4\n")
    assert list(NfsCollector(Site("n", tmp_path)).collect(utcnow())) == []
    (tmp_path / "self/mountstats").unlink()
    assert list(NfsCollector(Site("n", tmp_path)).collect(utcnow())) == []


WORDS = st.sampled_from(
    "device a:/b mounted on /m with fstype nfs4 statvers=1.1 age: bytes: xprt: tcp rdma per-op statistics READ: 0 1 -1 0x nan : \\040 "
    "18446744073709551615 99999999999999999999999 \u00b2 LINE".replace("LINE", "\n").split(" ")
)


@given(st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=60).map(" ".join)))
def test_any_text_gives_values_within_their_range_and_never_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    from exporters.collector import Site
    from pipeline.clock import utcnow

    root = tmp_path_factory.getbasetemp() / "nfs"
    (root / "self").mkdir(parents=True, exist_ok=True)
    (root / "self/mountinfo").write_text("1 0 0:9 / /m rw - nfs4 a:/b rw\n")
    (root / "self/mountstats").write_bytes((HEAD.replace("/x", "/m") + text).encode("utf-8", "replace"))
    _, rejected = accept(list(NfsCollector(Site("n", root)).collect(utcnow())))  # type: ignore[arg-type]
    assert rejected >= 0
    list(mountstats.parse(text))
