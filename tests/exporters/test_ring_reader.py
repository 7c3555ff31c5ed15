"""The ring reader against rings written by the hook, and against files that are none."""

import os
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.sending import wire as otlp_wire
from exporters.sources.process import Process
from exporters.sources.ring import TRIES, RingReader, parse_header
from exporters.sources.ring_records import decode, live
from pipeline.errors import InputError
from pipeline.records import Event, Step
from surefoot.hook import layout
from surefoot.hook.layout import CAPACITY, CRC, CRC_OFFSET, HEADER_SIZE, PHASES, SLOT_SIZE, WRITTEN_OFFSET, LiveCell
from surefoot.hook.ring import Identity, RingWriter

NS = 1_796_040_000_000_000_000  # 2026-11-30 12:00:00 UTC
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
WHO = Identity("run1", "run1-1", "node1", 3, 1, 8, NS)
PATH = "run1-1.3.ring"


def anybody(uid: int, pid: int) -> bool:
    return True


def write_step(writer: RingWriter, step: int, **more: Any) -> None:
    phases = [0] * len(PHASES)
    phases[PHASES.index("forward")] = 250_000_000
    writer.step(step, NS + step * 10**9, NS + (step + 1) * 10**9, phases, more.get("flags", 0), *more.get("figures", (0.0, 0.0, 0.0, 0, 0)))


def records(reader: RingReader) -> list[Step | Event]:
    return [decode(reader.header, sequence, slot) for sequence, slot in reader.read().slots]


@pytest.fixture
def writer(tmp_path: Path) -> RingWriter:
    return RingWriter.create(tmp_path, WHO)


@pytest.fixture
def reader(tmp_path: Path, writer: RingWriter, request: pytest.FixtureRequest) -> RingReader:
    made = RingReader.open(tmp_path / PATH, anybody)
    request.addfinalizer(made.close)
    return made


def test_the_header_names_run_attempt_node_rank_and_process(reader: RingReader) -> None:
    h = reader.header
    assert (h.run, h.attempt, h.node, h.rank, h.local_rank, h.world_size, h.pid) == ("run1", "run1-1", "node1", 3, 1, 8, os.getpid())


def test_a_step_is_read_with_its_times_phases_and_figures(writer: RingWriter, reader: RingReader) -> None:
    flags = sum(1 << i for i, _ in enumerate(layout.FIGURES))
    write_step(writer, 7, flags=flags, figures=(2.5, 0.125, 1e12, 4096, 8))
    (step,) = records(reader)
    assert step == Step(
        run="run1",
        attempt="run1-1",
        node="node1",
        rank=3,
        step=7,
        started_at=datetime(2026, 11, 30, 12, 0, 7, tzinfo=UTC),
        ended_at=datetime(2026, 11, 30, 12, 0, 8, tzinfo=UTC),
        forward=0.25,
        loss=2.5,
        grad_norm=0.125,
        flops=1e12,
        tokens=4096,
        samples=8,
    )


def test_a_figure_that_was_not_given_is_absent_and_one_that_is_no_number_is_named(writer: RingWriter, reader: RingReader) -> None:
    write_step(writer, 1, flags=0b11, figures=(float("nan"), float("inf"), 0.0, 0, 0))
    (step,) = records(reader)
    assert isinstance(step, Step)
    assert (step.loss, step.grad_norm, step.flops, step.nonfinite) == (None, None, None, "loss,grad_norm")


def test_phases_outside_steps_and_checkpoints_are_events_with_a_lasting_id(tmp_path: Path, writer: RingWriter, reader: RingReader) -> None:
    writer.phase(PHASES.index("load_checkpoint"), 0, NS, NS + 2_500_000_000)
    writer.checkpoint(40, NS + 3 * 10**9, 12345, "/ckpt/step 40")
    phase, checkpoint = records(reader)
    assert isinstance(phase, Event) and isinstance(checkpoint, Event)
    assert (phase.kind, phase.code, phase.duration, phase.at.second, phase.rank) == ("phase", "load_checkpoint", 2.5, 2, 3)
    assert (checkpoint.kind, checkpoint.code, checkpoint.attrs) == (
        "checkpoint_completed",
        "40",
        {"path": "/ckpt/step 40", "bytes": "12345"},
    )
    assert phase.id != checkpoint.id
    again = RingReader.open(tmp_path / PATH, anybody)
    assert records(again) == [phase, checkpoint]
    again.close()


def test_what_was_read_is_not_read_again_and_nothing_is_missed_over_many_rounds(writer: RingWriter, reader: RingReader) -> None:
    seen: list[int] = []
    step = 0
    for many in (1, 0, 700, 500, CAPACITY, 3):
        for _ in range(many):
            write_step(writer, step)
            step += 1
        batch = reader.read()
        assert batch.lost == 0 and batch.complete
        seen += [r.step for s, slot in batch.slots if isinstance(r := decode(reader.header, s, slot), Step)]
    assert seen == list(range(step))


def test_overwritten_records_are_counted_and_the_rest_is_read(writer: RingWriter, reader: RingReader) -> None:
    for step in range(CAPACITY + 100):
        write_step(writer, step)
    batch = reader.read()
    assert batch.lost == 100
    assert [sequence for sequence, _ in batch.slots] == list(range(100, CAPACITY + 100))


def test_a_torn_record_is_looked_at_again_and_then_read(tmp_path: Path, writer: RingWriter, reader: RingReader) -> None:
    write_step(writer, 0)
    write_step(writer, 1)
    with open(tmp_path / PATH, "r+b", buffering=0) as f:
        f.seek(HEADER_SIZE + 20)
        right = f.read(1)
        os.pwrite(f.fileno(), bytes([right[0] ^ 1]), HEADER_SIZE + 20)
        torn = reader.read()
        os.pwrite(f.fileno(), right, HEADER_SIZE + 20)
    assert torn.slots == [] and torn.lost == 0 and not torn.complete
    assert [r.step for r in records(reader) if isinstance(r, Step)] == [0, 1]


def test_a_record_that_stays_torn_is_given_up_counted_and_the_next_ones_are_read(
    tmp_path: Path, writer: RingWriter, reader: RingReader
) -> None:
    write_step(writer, 0)
    write_step(writer, 1)
    with open(tmp_path / PATH, "r+b", buffering=0) as f:
        os.pwrite(f.fileno(), b"\xff" * 8, HEADER_SIZE + 20)
    batches = [reader.read() for _ in range(TRIES)]
    assert sum(b.lost for b in batches) == 1
    assert [s for b in batches for s, _ in b.slots] == [1]


def test_a_slot_that_holds_a_later_record_counts_as_overwritten(tmp_path: Path, writer: RingWriter, reader: RingReader) -> None:
    for step in range(3):
        write_step(writer, step)
    body = layout.PHASE_RECORD.pack(CAPACITY + 1, layout.KIND_PHASE, 0, 0, NS, NS).ljust(CRC_OFFSET, b"\0")
    with open(tmp_path / PATH, "r+b", buffering=0) as f:
        os.pwrite(f.fileno(), body + CRC.pack(zlib.crc32(body)), HEADER_SIZE)
    batch = reader.read()
    assert batch.lost == 1 and [s for s, _ in batch.slots] == [1, 2]


def header_with(**fields: Any) -> bytes:
    given = dict(magic=b"SUREFOOT", version=1, header=HEADER_SIZE, slot=SLOT_SIZE, capacity=4, pid=77, rank=0, local=0, world=1, created=NS)
    names = dict(run=b"r", attempt=b"r-1", node=b"n")
    values = given | names | fields
    return layout.HEADER.pack(*values.values())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"magic": b"NOTAFOOT"}, "not a Surefoot ring"),
        ({"version": 2}, "version 2"),
        ({"slot": 128}, "slots of 128"),
        ({"capacity": 0}, "capacity 0"),
        ({"capacity": 2**32 - 1}, "capacity 4294967295"),
        ({"pid": 0}, "pid 0"),
        ({"rank": 2**31}, "rank 2147483648"),
        ({"attempt": b""}, "no attempt"),
        ({"attempt": b"\xff\xfe"}, "attempt is not UTF-8"),
        ({"run": b"a\nb"}, "run holds control"),
    ],
)
def test_a_header_that_cannot_be_is_refused_with_the_reason(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_header(header_with(**fields))


def ring_file(path: Path, header: bytes, size: int = HEADER_SIZE + 4 * SLOT_SIZE) -> Path:
    path.write_bytes(header.ljust(size, b"\0")[:size])
    return path


@pytest.mark.parametrize("size", [0, 10, HEADER_SIZE, HEADER_SIZE + 4 * SLOT_SIZE - 1, HEADER_SIZE + 4 * SLOT_SIZE + 1])
def test_a_file_of_the_wrong_size_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(InputError, match=r"shorter than|bytes long"):
        RingReader.open(ring_file(tmp_path / "x.ring", header_with(), size), anybody)


def test_a_symlink_a_folder_and_a_pipe_are_refused_without_hanging(tmp_path: Path) -> None:
    good = ring_file(tmp_path / "good", header_with())
    (tmp_path / "link.ring").symlink_to(good)
    (tmp_path / "folder.ring").mkdir()
    os.mkfifo(tmp_path / "pipe.ring")
    for name in ("link.ring", "folder.ring", "pipe.ring"):
        with pytest.raises((InputError, OSError)):
            RingReader.open(tmp_path / name, anybody)


def test_a_ring_of_the_wrong_owner_is_refused(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def nobody(uid: int, pid: int) -> bool:
        asked.append((uid, pid))
        return False

    with pytest.raises(InputError, match="owned by user"):
        RingReader.open(ring_file(tmp_path / "x.ring", header_with()), nobody)
    assert asked == [(os.geteuid(), 77)]


def test_refusing_leaves_no_file_open(tmp_path: Path) -> None:
    path = ring_file(tmp_path / "x.ring", b"junk")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(InputError):
            RingReader.open(path, anybody)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "change", [lambda p: os.truncate(p, 0), lambda p: os.truncate(p, HEADER_SIZE + 5), lambda p: overwrite_written(p, 2**63)]
)
def test_a_ring_that_is_cut_short_or_spoilt_while_it_is_read_is_refused_and_kills_nothing(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = ring_file(tmp_path / "x.ring", header_with())
    overwrite_written(path, 2)
    reader = RingReader.open(path, anybody)
    change(path)
    with pytest.raises(InputError):
        for _ in range(TRIES + 1):
            reader.read()
    reader.close()


def overwrite_written(path: Path, value: int) -> None:
    with open(path, "r+b") as f:
        f.seek(WRITTEN_OFFSET)
        f.write(value.to_bytes(8, "little"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None)
@given(junk=st.binary(min_size=0, max_size=1024), at=st.integers(0, HEADER_SIZE + 4 * SLOT_SIZE - 1))
def test_any_bytes_anywhere_in_a_ring_are_records_a_reason_or_a_loss_and_never_another_error(tmp_path: Path, junk: bytes, at: int) -> None:
    path = ring_file(tmp_path / "x.ring", header_with())
    overwrite_written(path, 4)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(junk[: HEADER_SIZE + 4 * SLOT_SIZE - at])
    check_reading(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None)
@given(body=st.binary(min_size=CRC_OFFSET, max_size=CRC_OFFSET), kind=st.integers(0, 4))
def test_any_whole_slot_is_a_record_or_a_reason(tmp_path: Path, body: bytes, kind: int) -> None:
    body = (1).to_bytes(8, "little") + kind.to_bytes(4, "little") + body[12:]
    path = ring_file(tmp_path / "x.ring", header_with())
    overwrite_written(path, 1)
    with open(path, "r+b") as f:
        f.seek(HEADER_SIZE)
        f.write(body + CRC.pack(zlib.crc32(body)))
    check_reading(path)


def check_reading(path: Path) -> None:
    try:
        reader = RingReader.open(path, anybody)
    except InputError:
        return
    try:
        for _ in range(TRIES + 1):
            batch = reader.read()
            for sequence, slot in batch.slots:
                try:
                    record = decode(reader.header, sequence, slot)
                except InputError:
                    continue
                wire = otlp_wire.encode_record("surefoot.step" if isinstance(record, Step) else "surefoot.event", record)
                assert len(wire) < 4096
            if batch.live:
                live(reader.header, batch.live, None, AT, 0)
    except InputError:
        return
    finally:
        reader.close()


def test_the_live_cell_becomes_a_live_record_with_the_processs_state(reader: RingReader) -> None:
    cell = LiveCell(7, 6, NS, "comm_wait", "all_reduce")
    seen = live(reader.header, cell, Process("S", 1.5, 9), AT, 2)
    assert (seen.step, seen.completed, seen.phase, seen.collective, seen.since) == (7, 6, "comm_wait", "all_reduce", AT)
    assert (seen.process_state, seen.cpu_seconds, seen.overrun, seen.pid) == ("S", 1.5, 2, os.getpid())
    assert live(reader.header, cell, None, AT, 0).process_state == "X"
