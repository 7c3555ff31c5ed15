"""Errors in the logs of Ascend's libraries, in the form of CANN's documentation and of logs that users showed."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import RankProcess, Site
from exporters.gpu.ascend_logs import AscendLogCollector, code_of
from exporters.sources.gpu import plog
from pipeline.records import Event
from pipeline.settings import AgentSettings

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAME = "plog-4711_20261130115900123.log"


def line(text: str, module: str = "HCCL", seconds: float = 0.0, pid: int = 4711, level: str = "ERROR") -> str:
    at = (AT + timedelta(seconds=seconds)).astimezone()
    stamp = f"{at:%Y-%m-%d-%H:%M:%S}.{at.microsecond // 1000:03d}.{at.microsecond % 1000:03d}"
    return f"[{level}] {module}({pid},python3):{stamp} [hccl_socket.cc:100] {text}\n"


TIMEOUT = "[2734049][Wait][LinkEstablish]wait socket establish timeout, role[1] rank[12] timeout[120]"
TRACE = "[2717288][InitNic]call trace: hcclRet -> 19"

Make = Callable[..., AscendLogCollector]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "log/debug/plog"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def collector(kept: Mapping[str, int] | None = None) -> AscendLogCollector:
        settings = AgentSettings(ascend_logs=tmp_path / "log")
        return AscendLogCollector(Site("node1", settings=settings, kept=kept or {}, ranks=lambda: (RankProcess("llama", 12, 4711, 1),)))

    return collector


def told(collector: AscendLogCollector, now: datetime = AT) -> list[Event]:
    return list(collector.collect(now))


def write(path: Path, text: str) -> None:
    with path.open("a") as opened:
        opened.write(text)


def test_an_error_and_the_lines_that_pass_it_on_are_one_event_of_the_rank_at_its_own_time(folder: Path, make: Make) -> None:
    collector = make()
    assert told(collector) == []
    write(folder / NAME, line(TRACE, seconds=-3) + line(TIMEOUT, seconds=-2.5) + line(TRACE, seconds=-2) + line("fine", level="INFO"))
    (event,) = told(collector)
    assert (event.kind, event.layer, event.code, event.count) == ("hccl_error", "communication", "EI0006", 3)
    assert (event.run, event.rank, event.node, event.at) == ("llama", 12, "node1", AT - timedelta(seconds=2.5))
    assert event.message == TIMEOUT
    assert event.attrs == {"module": "HCCL", "pid": "4711", "comm": "python3", "file": NAME, "place": "hccl_socket.cc:100"}
    assert told(collector) == []


def test_what_is_not_of_collectives_is_an_error_of_the_npu(folder: Path, make: Make) -> None:
    collector = make()
    told(collector)
    write(folder / NAME, line("EL0004: out of memory on the device", "RUNTIME") + line(TIMEOUT))
    assert {(e.kind, e.code, e.attrs["module"]) for e in told(collector)} == {
        ("npu_error", "EL0004", "RUNTIME"),
        ("hccl_error", "EI0006", "HCCL"),
    }


def test_what_was_there_before_the_first_agent_is_history_and_the_next_agent_reads_on(folder: Path, make: Make) -> None:
    write(folder / NAME, line(TIMEOUT))
    first = make()
    assert told(first) == []
    kept = first.kept()
    write(folder / NAME, line("[TaskExecStage][Timeout][HOST]Task run failed"))
    other = folder / "plog-5_1.log"
    write(other, line(TIMEOUT, pid=5))
    assert [(e.code, e.attrs["file"]) for e in told(make(kept))] == [("EI0002", NAME), ("EI0006", "plog-5_1.log")]


def test_what_is_written_after_a_look_that_found_no_folder_is_new(tmp_path: Path, make: Make) -> None:
    collector = make()
    assert told(collector) == []
    (tmp_path / "log/debug/plog").mkdir(parents=True)  # as the first process here does
    write(tmp_path / "log/debug/plog" / NAME, line(TIMEOUT))
    assert [event.code for event in told(collector)] == ["EI0006"]


@contextmanager
def kept_from_us(folder: Path) -> Iterator[None]:
    """The folder as root's home is to an agent that is not root."""
    folder.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)


def test_the_usual_folder_that_is_not_ours_to_read_is_no_fault_and_one_that_was_named_is(tmp_path: Path, folder: Path, make: Make) -> None:
    write(folder / NAME, line(TIMEOUT))
    usual = AscendLogCollector(Site("n", settings=AgentSettings.model_construct(set(), ascend_logs=tmp_path / "log")))
    with kept_from_us(tmp_path / "log"):
        assert told(usual) == []
        assert usual.absent() == f"logs of Ascend's libraries in {tmp_path / 'log'} would not be ours to read"
        with pytest.raises(PermissionError):
            told(make())
    assert usual.kept() == {}  # nobody has looked
    assert told(usual) == [] and usual.absent() == ""  # what was there is history still


def test_a_line_that_is_being_written_waits_for_its_end_and_a_file_that_began_anew_is_read_anew(folder: Path, make: Make) -> None:
    collector = make()
    told(collector)
    text = line(TIMEOUT)
    write(folder / NAME, text[:40])
    assert told(collector) == []
    write(folder / NAME, text[40:])
    assert len(told(collector)) == 1
    (folder / NAME).write_text(line(TIMEOUT, seconds=-1)[:-20] + "\n")
    assert len(told(collector)) == 1
    (folder / NAME).unlink()
    assert told(collector) == [] and collector.kept()[f"plog/{NAME}"] is None


def test_a_file_that_others_pushed_out_of_the_newest_is_read_on_where_it_was_and_never_from_its_beginning(folder: Path, make: Make) -> None:
    collector = make()
    told(collector)
    write(folder / NAME, line(TIMEOUT))
    assert len(told(collector)) == 1
    os.utime(folder / NAME, (1, 1))
    for n in range(plog.MOST_FILES):
        write(folder / f"plog-5_{n}.log", line("fine", level="INFO", pid=5))
    assert told(collector) == []
    after = make(kept_by(collector))
    assert told(after) == []
    write(folder / NAME, line("fine", level="INFO"))
    assert told(collector) == [] and told(after) == [], "its error was told before"
    write(folder / NAME, line("EI0002: notify wait"))
    assert [event.code for event in told(collector)] == [event.code for event in told(after)] == ["EI0002"]


def kept_by(collector: AscendLogCollector) -> Mapping[str, int]:
    return {key: value for key, value in collector.kept().items() if value is not None}


def test_a_time_that_cannot_be_is_not_believed_and_a_flood_becomes_a_count(folder: Path, make: Make) -> None:
    collector = make()
    told(collector)
    write(folder / NAME, line(TIMEOUT, seconds=-3 * 86400))
    assert [event.at for event in told(collector)] == [AT]
    found = 0
    for n in range(50):
        write(folder / NAME, line(TIMEOUT, seconds=-n / 10))
        found += len(told(collector))
    assert found < 10


def test_where_there_are_no_logs_it_says_so_and_links_are_not_followed(tmp_path: Path, folder: Path, make: Make) -> None:
    (tmp_path / "secret").write_text(line(TIMEOUT))
    collector = make()
    told(collector)
    (folder / NAME).symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "plog-1_2.log")
    assert told(collector) == []
    nowhere = AscendLogCollector(Site("n", settings=AgentSettings(ascend_logs=Path("/nowhere"))))
    assert told(nowhere) == [] and nowhere.absent() == "no logs of Ascend's libraries in /nowhere"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[InitGroupStage][RanktableCheck]errNo[0x0000000005010001] super_device_id[] is invalid", "EI0004"),
        ("[HcclSocket][Listen] socket type[1], listen on ip[192.168.20.160] and specific port[16666] fail.", "EI0019"),
        ("[Get][Connection]topo exchange server get socket timeout! timeout[3600 s]", "EI0006"),
        ("EI0006: [PID: 1292363] Getting socket times out.", "EI0006"),
        ("[1][Process]error cqe status 12", "cqe"),
        (TRACE, ""),
    ],
)
def test_errors_are_known_by_their_code_or_their_words(text: str, code: str) -> None:
    assert code_of(text) == code


@given(st.one_of(st.text(), st.text().map(lambda text: "[ERROR] HCCL(1,p):2026-13-41-25:61:00.000.000 " + text)))
def test_any_line_is_an_error_or_none(text: str) -> None:
    found = plog.parse(text)
    assert found is None or (found.at is None and text.startswith("[ERROR] HCCL"))


def test_a_time_with_a_blank_and_without_microseconds_is_read() -> None:
    found = plog.parse("[ERROR] HCCL(1265,):2025-10-21 07:56:47.198.454 [topo.cc:727][15326]text")
    assert found is not None and found.at is not None and (found.pid, found.process, found.place) == ("1265", "", "topo.cc:727")
    assert f"{found.at:%Y-%m-%d %H:%M:%S.%f}" == "2025-10-21 07:56:47.198454"
