"""The kernel's log as events: a saved log against the golden ones, what is read after a restart and a reboot, floods, times."""

import csv
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import RankProcess, Site
from exporters.kernel.collector import KernelCollector
from exporters.kernel.floods import BURST, TEXTS, WINDOW, Floods
from exporters.kernel.ranks import KEEP, Member, RankBook
from exporters.kernel.times import DRIFT, moment
from exporters.sending import wire
from exporters.sources.kernel.kmsg import Read
from exporters.sources.kernel.log import KernelRecord
from pipeline.catalog import xid_links, xids
from pipeline.catalog.events import BY_NAME
from pipeline.records import Event

ROOT = Path(__file__).parents[1]
BOOT = 1796027825  # btime of the fixture's /proc/stat
NOW = datetime(2026, 12, 1, tzinfo=UTC)
GPUS = {"0000:3b:00.0": "GPU-one", "0000:86:00.0": "GPU-two"}
CATALOGUE = ROOT.parents[1] / "shared/data/xid_catalog.csv"


def spelled(event: Event) -> str:
    """An event as a line of the golden file: what is the catalogue's own sentence is left out."""
    words = [f"{event.at.timestamp() - BOOT:.6f}", event.kind, event.code or "-", event.severity]
    words += [f"device={event.device}"] if event.device else []
    words += [f"{event.run}/{event.rank}"] if event.run else []
    kept = {k: v for k, v in event.attrs.items() if k not in ("summary", "clock_source")}
    return " ".join([*words, *(f"{k}={v.replace(' ', '_')}" for k, v in sorted(kept.items()))])


def test_a_saved_log_gives_the_golden_events(site: Site) -> None:
    mine = replace(site, gpus=lambda: GPUS)
    events = list(KernelCollector(mine).collect(datetime.fromtimestamp(BOOT + 1000, UTC)))
    golden = (ROOT / "golden/collector_kernel.events").read_text().splitlines()
    assert [set(spelled(e).split()) for e in events] == [set(line.split()) for line in golden]
    assert {e.attrs["clock_source"] for e in events} == {"kernel"}
    assert len({e.id for e in events}) == len(events)
    again = list(KernelCollector(mine).collect(datetime.fromtimestamp(BOOT + 2000, UTC)))
    assert [e.id for e in again] == [e.id for e in events], "what is told twice is the same"
    assert all(set(e.attrs) <= set(BY_NAME[e.kind].attrs) for e in events)
    assert next(e for e in events if e.code == "94").message.startswith("NVRM: Xid (PCI:0000:3b:00): 94, pid=4711")


# --- a log that goes on -------------------------------------------------------------------------


XID = "NVRM: Xid (PCI:0000:3b:00): {}, pid=1, name=python, Ch 00000008"


class FakeLog:
    """A log of records in a list."""

    saved = False
    cursor = "kernel.sequence"
    source = "a list"

    def __init__(self, records: list[KernelRecord], after: int | None) -> None:
        self.records = records
        self.after = records[-1].sequence if after is None and records else -1 if after is None else after

    def read(self) -> Read:
        new = tuple(r for r in self.records if r.sequence > self.after)
        lost = new[0].sequence - self.after - 1 if new else 0
        self.after = new[-1].sequence if new else self.after
        return Read(new, lost)

    def close(self) -> None:
        """Nothing is open."""


def xid(code: int, number: int, clock: float = 1.0) -> KernelRecord:
    return KernelRecord(XID.format(code), number, clock=clock)


@pytest.fixture
def open_log(tmp_path: Path) -> Callable[..., KernelCollector]:
    """Makes a collector over a list of records; the kernel's clock is at `clock`."""

    def make(records: list[KernelRecord], kept: dict[str, int] | None = None, boot: str = "boot-a", clock: float = 20.0) -> KernelCollector:
        (tmp_path / "sys/kernel/random").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/kernel/random/boot_id").write_text(boot)
        site = replace(Site("node1"), proc=tmp_path, kmsg=tmp_path, kept=kept or {}, ranks=lambda: (RankProcess("r", 3, 1, 5),))
        return KernelCollector(site, clock=lambda: clock, opener=lambda _, after: FakeLog(records, after(FakeLog.cursor)))

    return make


def codes(events: Iterable[Event]) -> list[str]:
    return [e.code or e.kind for e in events]


def test_a_killed_process_that_is_no_ranks_tells_of_which_runs_it_is_none(open_log: Callable[..., KernelCollector], tmp_path: Path) -> None:
    log: list[KernelRecord] = []
    collector = open_log(log)
    assert list(collector.collect(NOW)) == []
    log += [KernelRecord("Out of memory: Killed process 9 (cc1plus) total-vm:1kB", n, clock=n) for n in (0, 1)]
    log[1] = replace(log[1], text="Out of memory: Killed process 1 (python) total-vm:1kB")
    stranger, rank = collector.collect(NOW)
    assert (stranger.code, "known_runs" in stranger.attrs) == ("node", False), "whose ids the ranks have cannot be told"
    assert (rank.code, rank.run, rank.rank, "known_runs" in rank.attrs) == ("rank", "r", 3, False)
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026531836]")
    log.append(replace(log[0], sequence=2))
    (stranger,) = collector.collect(NOW)
    assert (stranger.code, stranger.run, stranger.attrs["known_runs"]) == ("node", "", "r")


# C14
def test_a_first_agent_tells_only_what_comes_and_one_after_a_reboot_all_since_the_boot(open_log: Callable[..., KernelCollector]) -> None:
    log = [xid(31, 0), xid(79, 1)]
    first = open_log(log)
    assert codes(first.collect(NOW)) == []
    log.append(xid(48, 2))
    assert codes(first.collect(NOW)) == ["48"]
    # saved boot A, current boot B, XID 79 three seconds after its boot, the agent comes at twenty
    after = open_log([KernelRecord("Linux version", 0, clock=0.0), xid(79, 1, 3.0)], dict(first.kept()), "boot-b", 20.0)
    (event,) = after.collect(NOW)
    assert (event.code, event.at) == ("79", NOW - timedelta(seconds=17))


def test_an_agent_started_anew_reads_on_and_one_that_had_heard_nothing_does_not_begin_before_itself(
    open_log: Callable[..., KernelCollector],
) -> None:
    log = [xid(31, 10), xid(31, 11)]
    first = open_log(log)
    assert codes(first.collect(NOW)) == []
    log.append(xid(63, 12))
    assert codes(open_log(log, dict(first.kept())).collect(NOW)) == ["63"]


def test_what_was_overwritten_is_counted(open_log: Callable[..., KernelCollector]) -> None:
    first = open_log([xid(31, 10)])
    list(first.collect(NOW))
    lost, after = open_log([xid(63, 15)], dict(first.kept())).collect(NOW)
    assert (lost.kind, lost.count, after.code) == ("kernel_log_lost", 4, "63")


# C01
def test_two_equal_xids_are_two_events_with_a_rank(open_log: Callable[..., KernelCollector]) -> None:
    log = [xid(1, 0)]
    mine = open_log(log)
    list(mine.collect(NOW))
    log += [xid(31, 1), xid(31, 2)]
    one, two = mine.collect(NOW)
    assert (one.code, two.code, one.run, one.rank) == ("31", "31", "r", 3)
    assert one.id != two.id


# C11
def test_a_45_follows_its_cause_and_alone_is_a_warning(open_log: Callable[..., KernelCollector]) -> None:
    log = [xid(1, 0)]
    mine = open_log(log)
    list(mine.collect(NOW))
    log += [xid(45, 1)]
    (alone,) = mine.collect(NOW)
    assert (alone.severity, "follows" in alone.attrs) == ("warning", False)
    log += [xid(48, 2), *(xid(45, n) for n in range(3, 8))]
    cause, *cleaning = mine.collect(NOW + timedelta(seconds=1))
    assert cause.code == "48" and {(e.severity, e.attrs["follows"]) for e in cleaning} == {("info", "48")}


# C13
def test_a_flood_is_a_few_events_and_one_with_a_count_and_what_was_not_told_is_read_again(open_log: Callable[..., KernelCollector]) -> None:
    log = [xid(1, 0)]
    clock = [100.0]
    mine = open_log(log)
    mine._clock = lambda: clock[0]
    list(mine.collect(NOW))
    log += [xid(31, n) for n in range(1, 10_001)]
    told = []
    for _ in range(3):
        told += list(mine.collect(NOW))
    assert [e.count for e in told] == [1] * BURST
    assert mine.kept()["kernel.sequence"] == 1 + BURST, "an agent killed now has told five of them"
    clock[0] += WINDOW
    (rest,) = mine.collect(NOW + timedelta(seconds=WINDOW))
    assert (rest.code, rest.count) == ("31", 10_000 - BURST)
    assert mine.kept()["kernel.sequence"] == 10_001


def test_a_flood_of_ever_other_texts_takes_no_more_room_than_its_limit() -> None:
    floods = Floods()
    event = Event(id="1", at=NOW, kind="io_error", layer="storage", severity="error", node="n", message="x")
    words = [f"{chr(97 + a)}{chr(97 + b)}{chr(97 + c)}" for a in range(16) for b in range(26) for c in range(26)]
    told = [one for n, w in enumerate(words) if (one := floods.take(replace(event, message=w), n, 0.0))]
    assert len(told) == TEXTS + BURST and len(floods._texts) == TEXTS + 1
    (rest,) = floods.due(WINDOW)
    assert len(told) + rest.count == len(words) and not floods._texts


def test_texts_that_differ_in_numbers_are_one_text_but_two_gpus_are_two() -> None:
    floods = Floods()
    event = Event(id="1", at=NOW, kind="xid", layer="compute", severity="error", node="n", device="GPU-a", message="Ch 00000008 at 0xdead")
    told = [floods.take(replace(event, message=f"Ch {n:08x} at 0x{n:x}"), n, 0.0) for n in range(10)]
    assert [one is not None for one in told] == [True] * BURST + [False] * 5
    assert floods.take(replace(event, device="GPU-b"), 11, 0.0) is not None


LINES = [text for text in (ROOT / "fixtures/kmsg").read_bytes().split(b"\n") if text]
DAMAGED = st.tuples(st.sampled_from(LINES), st.integers(0, 160), st.integers(0, 20), st.binary(max_size=8))


@given(st.lists(DAMAGED | st.binary(max_size=40), max_size=12))
def test_no_log_whatever_stands_in_it_is_an_error(tmp_path_factory: pytest.TempPathFactory, parts: list[Any]) -> None:
    lines = [part if isinstance(part, bytes) else part[0][: part[1]] + part[3] + part[0][part[1] + part[2] :] for part in parts]
    path = tmp_path_factory.getbasetemp() / "any.kmsg"
    path.write_bytes(b"\n".join(lines))
    collector = KernelCollector(replace(Site("node1"), kmsg=path, proc=ROOT / "fixtures/proc", gpus=lambda: GPUS))
    try:
        for event in collector.collect(NOW):
            assert set(event.attrs) <= set(BY_NAME[event.kind].attrs)
            assert event.at <= NOW and wire.encode_record("surefoot.event", event)
    except OSError as e:
        assert "is no kernel log" in str(e)


def saved(tmp_path: Path, lines: list[str]) -> KernelCollector:
    (tmp_path / "saved").write_text("".join(f"{line}\n" for line in lines))
    return KernelCollector(replace(Site("node1"), kmsg=tmp_path / "saved", proc=ROOT / "fixtures/proc", gpus=lambda: GPUS))


def test_a_saved_log_is_read_to_its_end_however_long_it_is(tmp_path: Path) -> None:
    filler = [f"[{n // 100:5d}.{n % 100:02d}0000] usb 1-1: new high-speed USB device" + " " * 200 for n in range(40_000)]
    collector = saved(tmp_path, [*filler, "[  999.000000] Kernel panic - not syncing: Fatal exception"])
    assert (tmp_path / "saved").stat().st_size > 8 << 20
    assert codes(collector.collect(NOW)) == ["panic"]


def test_of_a_flood_in_a_saved_log_every_line_is_told_or_counted_by_the_times_in_it(tmp_path: Path) -> None:
    """Twenty within two seconds, and ten an hour later: of each flood five one by one, and one for the rest."""
    times = [10 + n / 10 for n in range(20)] + [3610 + n / 10 for n in range(10)]
    events = list(saved(tmp_path, [f"[{at:12.6f}] {XID.format(31)}" for at in times]).collect(NOW))
    assert [event.count for event in events] == [1] * 5 + [15] + [1] * 5 + [5]


def test_a_file_that_is_no_kernel_log_is_told_and_an_empty_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"saved is no kernel log: none of its 2 lines has the form of /dev/kmsg, dmesg or syslog"):
        list(saved(tmp_path, ["name,count", "a,1"]).collect(NOW))
    assert list(saved(tmp_path, []).collect(NOW)) == []


def test_where_the_boot_cannot_be_told_only_what_comes_is_read(open_log: Callable[..., KernelCollector]) -> None:
    log = [xid(31, 5)]
    kept = {**open_log(log, {}, "").kept(), "kernel.boot": 7, "kernel.sequence": 9000}
    mine = open_log(log, kept, "")
    assert codes(mine.collect(NOW)) == []
    log.append(xid(48, 6))
    assert codes(mine.collect(NOW)) == ["48"]


# --- times --------------------------------------------------------------------------------------


# C15
def test_a_kernel_clock_that_drifted_for_hours_is_not_believed() -> None:
    # as reported: computed 07:53:13, arrived 18:46:46
    received = datetime(2026, 5, 4, 18, 46, 46, tzinfo=UTC)
    boot = datetime(2026, 5, 4, 7, 53, 13, tzinfo=UTC).timestamp() - 1000
    since = received - timedelta(seconds=0.5)
    assert moment(KernelRecord("x", 1, clock=1000.0), received, since, boot) == (received, "receive")
    ahead = received.timestamp() + DRIFT + 1 - 1000
    assert moment(KernelRecord("x", 1, clock=1000.0), received, None, ahead) == (received, "receive")


@pytest.mark.parametrize(
    ("clock", "since", "expected"),
    [
        (99.75, 0.5, (NOW - timedelta(seconds=0.25), "kernel")),
        (96.0, 0.5, (NOW - timedelta(seconds=4), "kernel")),  # within what the clocks may differ by
        (94.0, 0.5, (NOW, "receive")),
        (10.0, None, (NOW - timedelta(seconds=90), "kernel")),  # of a log that is read for the first time
        (102.0, 0.5, (NOW, "kernel")),  # nothing happens after it was heard of
        (None, 0.5, (NOW, "receive")),
        (1e300, None, (NOW, "receive")),
    ],
)
def test_the_time_of_a_line(clock: float | None, since: float | None, expected: tuple[datetime, str]) -> None:
    boot = NOW.timestamp() - 100
    heard = None if since is None else NOW - timedelta(seconds=since)
    assert moment(KernelRecord("x", 1, clock=clock), NOW, heard, boot) == expected


def test_the_journals_time_is_when_it_received_the_line() -> None:
    assert moment(KernelRecord("x", 1, clock=1.0, at=NOW.timestamp() - 7), NOW, NOW, 0.0) == (NOW - timedelta(seconds=7), "journal")


# --- the catalogue of XIDs ----------------------------------------------------------------------


def test_every_xid_stands_once_and_subcodes_belong_to_the_links() -> None:
    assert [x.code for x in xids.XIDS] == list(range(1, 173))
    assert {p.xid for p in xid_links.PARTS} == set(range(144, 151))
    assert len(xid_links.BY_NAME) == len(xid_links.PARTS)


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (79, "RESTART_BM"),
        (63, "IGNORE"),
        (64, "RESET_GPU"),
        (94, "RESTART_APP"),
        (95, "RESET_GPU"),
        (31, "RESTART_APP"),
        (119, "RESET_GPU"),
    ],
)
def test_the_actions_that_matter_most_are_nvidias(code: int, action: str) -> None:
    assert xids.BY_CODE[code].immediate == action


@pytest.mark.parametrize(
    ("part", "fatal", "info", "status", "action"),
    [
        ("SAW_MVB", True, 0x21, 0x2, "RESET_GPU"),
        ("SAW_MVB", False, 0x21, 0x4, "IGNORE"),
        ("RLW_REMAP", False, 0x4, 0x8, "XID_154_EVAL"),
        ("TLW_TX_PIPE1", True, 0xD, 0x4, "RESET_GPU"),
        ("NETIR_BER_EVENT", False, 0x00086226, 0x1, "IGNORE"),
        ("NETIR_LINK_EVT", True, 0x025001C6, 0x0, "RESET_GPU"),  # 37: the peer
        ("NETIR_LINK_EVT", True, 0x026001C6, 0x0, "IGNORE"),  # 38: software took the link down
        ("SOMETHING_NEW", True, 0, 0, "RESET_GPU"),
        ("SOMETHING_NEW", False, 0, 0, "IGNORE"),
    ],
)
def test_what_a_link_error_wants_done_follows_from_its_part_status_and_reason(
    part: str, fatal: bool, info: int, status: int, action: str
) -> None:
    assert xid_links.action(part, fatal, info, status) == action


def test_mnemonics_and_actions_agree_with_nvidias_catalogue() -> None:
    if not CATALOGUE.exists():
        pytest.skip(f"no shared test data at {CATALOGUE}")
    own_words = {45, 154, 94, 95, 159}  # the catalogue puts two answers or a remark into one cell
    with CATALOGUE.open() as f:
        for row in csv.DictReader(f):
            mine = xids.BY_CODE[int(row["code"])]
            assert mine.mnemonic == row["mnemonic"].split(" / ")[0]
            if mine.code not in own_words:
                assert (mine.immediate, mine.investigatory) == (row["immediate"], row["investigatory"])


# --- this machine -------------------------------------------------------------------------------


def test_lines_written_into_this_kernels_log_become_events() -> None:
    if not os.access("/dev/kmsg", os.R_OK | os.W_OK):
        pytest.skip("may not read and write the kernel's log here")
    marker = f"surefoot-{os.getpid()}-{os.urandom(4).hex()}"
    collector = KernelCollector(Site("here"))
    assert list(collector.collect(datetime.now(UTC))) == []
    for text in (
        f"EXT4-fs error (device {marker}): marked",
        f"I/O error, dev {marker}, sector 7 op 0x0:(READ) flags 0x0",
        f"{marker} nothing",
    ):
        with open("/dev/kmsg", "wb", buffering=0) as f:
            f.write(f"<4>{text}\n".encode())
    events = [e for e in collector.collect(datetime.now(UTC)) if marker in e.message]
    assert [(e.kind, e.code) for e in events] == [("filesystem_error", "error"), ("io_error", "io")]
    assert all(abs((datetime.now(UTC) - e.at).total_seconds()) < 60 for e in events)
    kept = dict(collector.kept())
    collector.close()
    after = KernelCollector(replace(Site("here"), kept=kept))
    assert [e for e in after.collect(datetime.now(UTC)) if marker in e.message] == []
    after.close()


def test_a_machine_without_such_a_log_is_well(tmp_path: Path) -> None:
    collector = KernelCollector(replace(Site("node1"), kmsg=tmp_path / "none", proc=tmp_path))
    assert list(collector.collect(NOW)) == [] and dict(collector.kept()) == {}


def test_a_process_belongs_to_the_rank_that_it_descends_from(tmp_path: Path) -> None:
    def status(pid: int, tgid: int, parent: int) -> None:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / f"{pid}/status").write_text(f"Name:\tx\nTgid:\t{tgid}\nPid:\t{pid}\nPPid:\t{parent}\n")

    status(1, 1, 0)
    status(10, 10, 1)
    status(11, 10, 1)  # a thread
    status(20, 20, 10)  # a loader's worker
    status(30, 30, 1)
    status(40, 40, 40)  # no kernel says so
    rank = RankProcess("r", 0, 10, 1)
    ranks = [rank]
    book = RankBook(lambda: ranks, tmp_path)
    book.look(0.0)
    assert [book.of(pid) for pid in ("10", "11", "20", "30", "40", "99", "x", None)] == [
        Member(rank, True),
        Member(rank, True),
        Member(rank, False),
        *[None] * 5,
    ]
    ranks.clear()
    book.look(KEEP)
    assert book.of("20") == Member(rank, False), "the killed rank is gone, its worker not yet"
    book.look(KEEP + 1)
    assert book.of("20") is None
