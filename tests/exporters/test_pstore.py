"""Crashes that the kernel saved, as files written from Documentation/ABI/testing/pstore and the texts of panic() and die()."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Site
from exporters.kernel.pstore import PstoreCollector, telling
from exporters.sources.kernel import pstore
from exporters.sources.kernel.pstore import Crash, Saved
from pipeline.records import Event

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOOT = int(AT.timestamp()) - 120
CRASH = BOOT - 60
PANIC = "Kernel panic - not syncing: Fatal exception in interrupt"
BUG = "BUG: unable to handle page fault for address: ffffc90000000000"
NEWEST = f"Panic#2 Part1\n<4>[  812.000001] Call Trace:\n<0>[  812.000002] {PANIC}\n<0>[  812.000003] Kernel Offset: disabled\n"
OLDER = f"Panic#2 Part2\n<6>[  811.000001] eth0: link becomes ready\n<1>[  811.500000][ T4711] {BUG}\n"


@dataclass
class Machine:
    """A /sys with saved crashes, a /proc that knows when it booted, and what agents keep from one to the next."""

    root: Path

    def has(self, name: str, text: str, at: int = CRASH) -> Path:
        path = self.root / "sys/fs/pstore" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (at, at))
        return path

    def agent(self, kept: Mapping[str, int] | None = None) -> PstoreCollector:
        (self.root / "proc").mkdir(exist_ok=True)
        (self.root / "proc/stat").write_text(f"cpu  1 2 3 4 5 6 7 8 0 0\nbtime {BOOT}\n")
        return PstoreCollector(
            Site("node1", proc=self.root / "proc", sys=self.root / "sys", moved_crashes=self.root / "moved", kept=kept or {})
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def told(collector: PstoreCollector) -> list[Event]:
    return list(collector.collect(AT))


def test_a_panic_is_told_once_with_its_own_line_whatever_parts_it_was_saved_in(machine: Machine) -> None:
    machine.has("dmesg-efi_pstore-179603982001002", NEWEST)
    machine.has("dmesg-efi_pstore-179603982002002", OLDER, CRASH + 1)
    collector = machine.agent()
    (event,) = told(collector)
    assert (event.kind, event.layer, event.severity, event.code) == ("kernel_crashed", "kernel", "critical", "panic")
    assert (event.message, event.node, event.at) == (PANIC, "node1", AT)
    assert event.attrs == {"file": "/sys/fs/pstore/dmesg-efi_pstore-179603982001002", "crashed_at": "2026-11-30T11:57:00+00:00"}
    assert not told(collector) and not told(machine.agent(collector.kept()))
    assert len(list((machine.root / "sys/fs/pstore").iterdir())) == 2, "nothing is taken away"


def test_one_that_is_told_again_after_its_agent_was_killed_has_the_same_id(machine: Machine) -> None:
    machine.has("dmesg-ramoops-0", NEWEST)
    assert told(machine.agent())[0].id == told(machine.agent())[0].id


def test_an_oops_and_the_panic_after_it_are_two_crashes_each_with_its_line(machine: Machine) -> None:
    machine.has("dmesg-erst-7000000000000000001", f"Oops#1 Part1\n<1>[  1.000000] {BUG}\n")
    machine.has("dmesg-erst-7000000000000000002", NEWEST)
    assert [(event.code, event.message) for event in told(machine.agent())] == [("oops", BUG), ("panic", PANIC)]


def test_the_same_name_with_other_lines_is_another_crash_and_one_that_comes_later_is_told(machine: Machine) -> None:
    machine.has("dmesg-ramoops-0", NEWEST)
    collector = machine.agent()
    assert len(told(collector)) == 1
    machine.has("dmesg-ramoops-0", NEWEST.replace("812.", "30."), CRASH + 30)
    assert len(told(collector)) == 1
    machine.has("dmesg-ramoops-1", f"Oops#1 Part1\n{BUG}\n")
    assert [event.code for event in told(collector)] == ["oops"]


def test_what_crashed_long_before_the_first_agent_came_is_history_and_later_agents_tell_however_long_the_node_was_down(
    machine: Machine,
) -> None:
    machine.has("dmesg-erst-1", NEWEST, BOOT - 90 * 86400)
    first = machine.agent()
    assert told(first) == []
    machine.has("dmesg-erst-2", NEWEST, BOOT - 3 * 86400)
    assert [event.attrs["file"] for event in told(machine.agent(first.kept()))] == ["/sys/fs/pstore/dmesg-erst-2"]


def test_a_crash_whose_files_were_taken_away_is_not_remembered_for_ever(machine: Machine) -> None:
    path = machine.has("dmesg-efi-1", NEWEST)
    collector = machine.agent()
    assert len(told(collector)) == 1 and len(collector.kept()) == 2
    path.unlink()
    assert told(collector) == [] and dict(collector.kept()) == {"pstore.looked": 1}


def test_what_systemd_moved_before_the_agent_came_is_told_and_what_it_moves_afterwards_is_not_told_again(machine: Machine) -> None:
    """Debian's systemd-pstore.service is done before an agent begins: /sys/fs/pstore is empty then."""
    moved = machine.root / "moved/1796039820/001"
    moved.mkdir(parents=True)
    (machine.root / "sys/fs/pstore").mkdir(parents=True)
    (moved / "dmesg-efi_pstore-179603982001001").write_text(NEWEST)
    (moved / "dmesg.txt").write_text(NEWEST)  # the parts put together
    collector = machine.agent()
    (event,) = told(collector)
    name = "dmesg-efi_pstore-179603982001001"
    assert event.attrs == {"file": str(moved / name), "crashed_at": "2026-11-30T11:57:00+00:00"}
    path = machine.has("dmesg-ramoops-0", NEWEST)
    (later,) = told(collector)
    path.rename(machine.root / "moved/dmesg-ramoops-0")
    os.utime(machine.root / "moved/dmesg-ramoops-0", (BOOT + 5, BOOT + 5))
    assert later.id != event.id and told(collector) == [] and told(machine.agent(collector.kept())) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dmesg-efi-1", "Shutdown#1 Part1\n<6>[ 9.000000] reboot: Power down\n"),
        ("dmesg-efi-1", f"{PANIC}\n"),  # no first line of the kernel's
        ("dmesg-efi-1", "Panic#1 Part2\nthe first part is gone\n"),
        ("dmesg-efi-1.enc.z", NEWEST),
        ("console-ramoops-0", NEWEST),
        ("mce-erst-1", NEWEST),
        ("dmesg-efi-1", ""),
    ],
)
def test_what_is_no_crash_or_cannot_be_understood_is_not_told(machine: Machine, name: str, text: str) -> None:
    machine.has(name, text)
    assert told(machine.agent()) == []


def test_a_crash_without_a_line_that_says_why_says_so() -> None:
    assert telling(Crash(Saved("dmesg-efi-1", 1, 1), "i", "panic", ("Call Trace:",))) == "panic, of which no line was saved that says why"
    assert telling(Crash(Saved("dmesg-efi-1", 1, 1), "i", "panic", (BUG,))) == BUG


def test_a_machine_that_saves_nothing_is_well_and_says_so(machine: Machine) -> None:
    collector = machine.agent()
    assert told(collector) == [] and collector.absent() == "no sys/fs/pstore"
    machine.has("x", "").unlink()
    assert told(collector) == [] and collector.absent() == "no crash saved in sys/fs/pstore, and none that systemd-pstore moved from there"
    machine.has("dmesg-efi-1", NEWEST)
    assert collector.absent() == ""


def test_a_file_that_cannot_be_read_costs_no_other_one_anything_and_links_are_not_followed(machine: Machine) -> None:
    folder = machine.has("dmesg-efi-2", NEWEST).parent
    (folder / "dmesg-efi-1").mkdir()
    (folder / "dmesg-efi-3").symlink_to(folder / "dmesg-efi-2")
    assert [event.attrs["file"] for event in told(machine.agent())] == ["/sys/fs/pstore/dmesg-efi-2"]


def test_of_a_file_only_so_much_is_read(machine: Machine) -> None:
    machine.has("dmesg-efi-1", "Panic#1 Part1\n" + "x" * pstore.MOST_BYTES + f"\n{PANIC}\n")
    assert PANIC not in told(machine.agent())[0].message


@given(
    st.lists(st.one_of(st.binary(), st.binary().map(b"Panic#1 Part1\n".__add__), st.binary().map(b"Oops#3 Part2\n<1>[ 1.000000] ".__add__)))
)
def test_any_bytes_give_crashes_or_none(contents: list[bytes]) -> None:
    parts = [pstore.part(Saved(f"dmesg-efi-{n}", n, len(raw)), raw) for n, raw in enumerate(contents)]
    found = pstore.crashes(part for part in parts if part)
    assert len(found) == sum(raw.startswith(b"Panic#1 Part1\n") for raw in contents)
    assert all(telling(crash) for crash in found)
