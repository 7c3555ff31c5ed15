"""systemd's journal in place of /dev/kmsg: entries as journalctl writes them, from a journalctl made by the test."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Site
from exporters.kernel.collector import AGAIN, KernelCollector, open_log
from exporters.sources.kernel.journal import Journal, parse
from exporters.sources.kernel.kmsg import Read
from exporters.sources.kernel.log import KernelRecord

NOW = datetime(2026, 12, 1, tzinfo=UTC)
MICROS = 1_796_083_200_000_000  # 2026-12-01 00:00:00 UTC


def entry(message: Any, number: int = 0, **more: Any) -> str:
    told = {"PRIORITY": "3", "SYSLOG_FACILITY": "0", "_SOURCE_MONOTONIC_TIMESTAMP": "5000000", "_TRANSPORT": "kernel"}
    return json.dumps({"MESSAGE": message, "__REALTIME_TIMESTAMP": str(MICROS + number), **told, **more})


@pytest.fixture
def journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes the journalctl that is found: a shell script. What it was called with lies in the file that is given back."""

    def make(script: str, follows: bool = True) -> Path:
        program = tmp_path / "bin/journalctl"
        program.parent.mkdir(exist_ok=True)
        first = 'case "$*" in *--follow*) ;; *) exit 0 ;; esac'  # is there one at all?
        program.write_text(f'#!/bin/sh\n{first if follows else ""}\necho "$@" > {tmp_path}/called\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return tmp_path / "called"

    return make


def follow(*lines: str) -> str:
    return "".join(f"printf '%s\\n' '{line}'\n" for line in lines) + "exec sleep 60"


def read_some(log: Journal, wanted: int) -> list[KernelRecord]:
    found: list[KernelRecord] = []
    while len(found) < wanted:
        found += log.read().records
    return found


def test_an_entry_is_read_as_systemd_documents_it() -> None:
    assert parse(entry("hello", 7).encode()) == KernelRecord("hello", MICROS + 7, level=3, facility=0, clock=5.0, at=NOW.timestamp() + 7e-6)
    raw = parse(entry([104, 255, 105]).encode())
    assert raw is not None and raw.text == "h\ufffdi"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"MESSAGE": "x"}', '{"MESSAGE": null, "__REALTIME_TIMESTAMP": "1"}', "[" * 100_000]
)
def test_what_is_no_entry_is_none(text: str) -> None:
    assert parse(text.encode()) is None


@given(
    st.binary()
    | st.dictionaries(st.sampled_from(["MESSAGE", "__REALTIME_TIMESTAMP", "PRIORITY"]), st.text() | st.integers()).map(
        lambda d: json.dumps(d).encode()
    )
)
def test_any_bytes_are_an_entry_or_none(raw: bytes) -> None:
    parse(raw)


def test_a_journal_is_followed_from_where_it_was_left(journalctl: Callable[[str], Path]) -> None:
    called = journalctl(follow(entry("old", 0), entry("new", 1), "nonsense", entry("newer", 2)))
    log = Journal(Path("/dev/kmsg"), MICROS)
    assert [r.text for r in read_some(log, 2)] == ["new", "newer"]
    assert called.read_text().split()[-2:] == ["--lines=all", f"--since=@{MICROS // 10**6}"]
    assert log.read() == Read(())
    log.close()


def test_at_first_it_is_only_followed_and_after_a_reboot_read_whole(journalctl: Callable[[str], Path]) -> None:
    called = journalctl(follow(entry("x")))
    for after, told in ((None, "--lines=0"), (-1, "--lines=all")):
        log = Journal(Path("/dev/kmsg"), after)
        read_some(log, 1)
        assert called.read_text().split()[-1] == told and "--follow" in called.read_text()
        log.close()


def test_a_log_that_may_not_be_read_is_read_from_the_journal(journalctl: Callable[[str], Path], tmp_path: Path) -> None:
    journalctl(follow(entry("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")))
    refused: list[str] = []

    def opener(path: Path, after: Callable[[str], int | None]) -> Any:
        refused.append(str(path))
        return Journal(path, after(Journal.cursor))

    collector = KernelCollector(replace(Site("node1"), kmsg=tmp_path, proc=tmp_path), opener=opener)
    found = []
    while not found:
        found = list(collector.collect(NOW))
    assert (found[0].code, found[0].at, found[0].attrs["clock_source"]) == ("79", NOW, "journal")
    assert collector.kept()["kernel.journal"] == MICROS + 1
    collector.close()


def test_a_journalctl_that_ends_is_started_again_later(journalctl: Callable[[str], Path], tmp_path: Path) -> None:
    journalctl("exit 1")
    clock = [100.0]
    collector = KernelCollector(
        replace(Site("node1"), kmsg=tmp_path, proc=tmp_path), clock=lambda: clock[0], opener=lambda p, a: Journal(p, a(Journal.cursor))
    )
    with pytest.raises(OSError, match="journalctl ended"):
        while True:
            list(collector.collect(NOW))
    journalctl(follow(entry("Kernel panic - not syncing: x")))
    with pytest.raises(OSError, match="journalctl ended"):  # not at once again, as it would end again; nor is it well meanwhile
        list(collector.collect(NOW))
    clock[0] += AGAIN
    found = []
    while not found:
        found = list(collector.collect(NOW))
    assert found[0].code == "panic"
    collector.close()


def test_without_either_the_reason_is_the_logs_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no journalctl"):
        Journal(Path("/dev/kmsg"), None)
    with pytest.raises(OSError, match="neither"):
        open_log(tmp_path, lambda _: None)


NO_KMSG = """
import json, sys
from datetime import UTC, datetime
from exporters.collector import Site
from exporters.kernel.collector import KernelCollector
collector = KernelCollector(Site("node1"))
error = ""
found = []
try:
    for _ in range(2000):
        found += collector.collect(datetime(2026, 12, 1, tzinfo=UTC))
        if found or not collector.source():
            break
except OSError as e:
    error = str(e)
print(json.dumps([[e.code for e in found], collector.source(), collector.absent(), error]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
@pytest.mark.parametrize(
    ("script", "follows", "told"),
    [
        (follow(entry("Kernel panic - not syncing: x")), True, [["panic"], "systemd's journal", "", ""]),
        (
            "echo No journal files were found. >&2; exit 1",
            False,
            [
                [],
                "",
                "no kernel log: /dev/kmsg: No such file or directory, and nothing from systemd's journal: journalctl ended with 1: "
                "No journal files were found.",
                "",
            ],
        ),
    ],
)
def test_in_a_container_without_dev_kmsg_the_journal_is_read_and_where_there_is_none_either_the_log_is_absent(
    journalctl: Callable[..., Path], script: str, follows: bool, told: list[object]
) -> None:
    journalctl(script, follows)
    hide = 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec "$1" -c "$2"'
    command = ["unshare", "-m", "sh", "-c", hide, "sh", sys.executable, NO_KMSG]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(done.stderr)
    assert json.loads(done.stdout) == told, done.stderr
