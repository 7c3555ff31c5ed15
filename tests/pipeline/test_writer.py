"""The writer stores every row once, events first, whatever the store does meanwhile."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from exporters.sending.wire import encode_record, logs_request, pairs, resource
from pipeline.clock import to_micros
from pipeline.errors import InputError, SpoolFull, StoreError, StoreUnavailable
from pipeline.ingest import writer as writer_module
from pipeline.ingest.arrivals import Arrival, Form, of_beats
from pipeline.ingest.batches import Kept, hurried, patient
from pipeline.ingest.health import Health
from pipeline.ingest.intake import Busy, Intake, read_back
from pipeline.ingest.pacing import HURRY_GAP, SEGMENT_BYTES, SOON_GAP, Pace, Waiting, Work, due
from pipeline.ingest.quarantine import Quarantine
from pipeline.ingest.seen import Seen, Verdict
from pipeline.ingest.spool import Spool
from pipeline.ingest.writer import Writer
from pipeline.otlp.decode import Signal
from pipeline.otlp.decoded import Decoded, Haste
from pipeline.records import AttemptTransition, Beat, Event, Live, Record, RunTransition, Step
from pipeline.store import Store

PACE = Pace(0.2, 1000)
NOW = datetime(2026, 10, 1, 12, 0, 0, 250_000, tzinfo=UTC)
STEP = Step(run="r", attempt="r-1", node="n1", rank=3, step=7, started_at=NOW, ended_at=NOW, forward=0.25, loss=-1.5, tokens=4096)
LIVE = Live(run="r", attempt="r-1", node="n1", rank=3, at=NOW, pid=4711, step=8, completed=7, phase="comm_wait", since=NOW)
EVENT = Event(id="e1", at=NOW, kind="rank_exited", layer="framework", severity="info", rank=3, code="-9", attrs={"signal": "9"})
NAMES = {Step: "surefoot.step", Live: "surefoot.live", Event: "surefoot.event"}


def logs_of(*records: Record) -> bytes:
    return logs_request(resource({"host.name": "n1"}), [encode_record(NAMES[type(r)], r) for r in records])


def metrics_of(at: datetime, *readings: tuple[str, float, dict[str, str]]) -> bytes:
    """A metrics request of node n1."""
    request = ExportMetricsServiceRequest()
    resource_metrics = request.resource_metrics.add()
    resource_metrics.resource.attributes.extend(pairs({"host.name": "n1"}))
    scope = resource_metrics.scope_metrics.add()
    for name, value, attributes in readings:
        point = scope.metrics.add(name=name).gauge.data_points.add(time_unix_nano=to_micros(at) * 1000, as_double=value)
        point.attributes.extend(pairs(attributes))
    return request.SerializeToString()


class Shelf:
    """A store in memory that leaves out repeated tokens, as ClickHouse does. The next inserts raise `before` or `after` they store."""

    def __init__(self) -> None:
        self.inserts: list[tuple[float, str, str, list[Any]]] = []
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.refuse: Callable[[str], Exception | None] = lambda table: None
        self._tokens: set[tuple[str, str]] = set()

    def insert(self, records: Sequence[Record], *, token: str) -> None:
        self.insert_rows(records[0].table, [r.attributes() for r in records], token=token)

    def insert_rows(self, table: str, rows: Sequence[Any], *, token: str) -> None:
        assert rows
        assert token
        if self.before:
            raise self.before.pop(0)
        if error := self.refuse(table):
            raise error
        if (table, token) not in self._tokens:
            self._tokens.add((table, token))
            self.inserts.append((time.monotonic(), table, token, list(rows)))
        if self.after:
            raise self.after.pop(0)

    def rows(self, table: str) -> list[Any]:
        return [row for _, name, _, rows in self.inserts if name == table for row in rows]


class Rig:
    """Spool, intake and writer over a store."""

    def __init__(self, folder: Path, sink: Any, pace: Pace = PACE) -> None:
        self.folder = folder
        self.spool: Spool[Kept] = Spool(folder, 1 << 24)
        self.seen = Seen(folder / "seen.log")
        self.health = Health(lambda: self.spool.size, self.spool.oldest)
        self.writer = Writer(self.spool, lambda: sink, read_back, Quarantine(folder / "quarantine"), self.seen, self.health, pace)
        self.intake = Intake(self.spool, self.seen, self.writer.wake, self.health)

    def take(self, *records: Record, batch: str = "") -> Decoded:
        return self.intake.take(Arrival(Form.OTLP, NOW, logs_of(*records), batch))

    def stop(self) -> None:
        self.writer.stop(30.0)
        self.spool.close()

    def abandon(self) -> None:
        """As after kill -9: files as they are, nothing flushed."""
        self.writer.stop(0.0)
        self.spool.close()

    def count(self, name: str, **labels: str) -> float:
        families = text_string_to_metric_families(self.health.page().decode())
        return sum(s.value for f in families for s in f.samples if s.name == name and labels.items() <= s.labels.items())


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def rig(tmp_path: Path, shelf: Shelf) -> Iterator[Rig]:
    made = Rig(tmp_path / "spool", shelf)
    made.writer.start()
    yield made
    made.stop()


def until(true: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.005)


def events(n: int) -> list[Event]:
    return [replace(EVENT, id=f"e{i}") for i in range(n)]


# --- what goes together ----------------------------------------------------------------------


def test_events_go_with_their_chunk_and_steps_with_their_segment() -> None:
    decoded = Decoded()
    for record in (STEP, LIVE, EVENT):
        decoded.add(record)
    decoded.add_row("logs", {"Timestamp": NOW, "Body": "x"})
    kept = [Kept("", decoded)]
    assert [(b.token, b.table) for b in hurried("s.0", kept)] == [("s.0:events", "events"), ("s.0:live", "live")]
    assert [(b.token, b.table) for b in patient("s", kept)] == [("s:logs", "logs"), ("s:steps", "steps")]


def test_what_happened_is_stored_before_the_change_of_state_that_it_led_to() -> None:
    """Else the leader may read that an attempt ended, and not yet how its ranks did (seen after a kill -9 of ingest)."""
    ended = AttemptTransition(old_state="running", new_state="ended", reason="", actor="l", at=NOW, run="r", attempt="r-1", launch=1)
    over = RunTransition(old_state="started", new_state="failed", reason="", actor="l", at=NOW, run="r", node="n")
    decoded = Decoded()
    for record in (over, ended, EVENT):
        decoded.add(record)
    assert [b.table for b in hurried("s.0", [Kept("", decoded)])] == ["events", "attempts", "runs"]


def test_a_beat_that_changes_something_is_hurried_and_another_is_not() -> None:
    beat = Beat(component="launcher", at=NOW)
    for is_hurried in (True, False):
        decoded = of_beats([beat], NOW, hurried=is_hurried).decode()
        assert decoded.records == {Beat: [beat]}
        assert (len(hurried("s.0", [Kept("", decoded)])), len(patient("s", [Kept("", decoded)]))) == (is_hurried, not is_hurried)


def test_rows_of_two_hundred_days_are_split_so_that_no_insert_has_too_many_partitions() -> None:
    decoded = Decoded()
    for i in range(400):
        decoded.add_row("logs", {"Timestamp": NOW - timedelta(days=i % 200), "Body": str(i)})
    found = patient("s", [Kept("", decoded)])
    assert [b.token for b in found] == ["s:logs/0", "s:logs/1", "s:logs/2"]
    assert all(len({row["Timestamp"].date() for row in b.rows if isinstance(row, dict)}) <= 90 for b in found)
    assert sum(len(b.rows) for b in found) == 400


# --- when it is due --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("haste", "expected"),
    [(Haste.NOW, (Work.HURRY, 0.0)), (Haste.SOON, (Work.HURRY, 0.0)), (Haste.BATCH, (Work.WAIT, 1.0))],
)
def test_after_a_quiet_time_events_and_live_rows_go_at_once_and_others_wait_for_their_batch(haste: Haste, expected: Any) -> None:
    waiting = Waiting()
    waiting.add(haste, 1, 10, now=100.0)
    assert due(waiting, Pace(1.0, 100), 100.0, 0.0, busy=False, chunks=False) == expected


def test_a_stream_of_live_rows_goes_four_times_a_second_and_of_events_twenty_times() -> None:
    for haste, gap in ((Haste.SOON, SOON_GAP), (Haste.NOW, HURRY_GAP)):
        waiting = Waiting()
        waiting.begin(Work.HURRY, 100.0)
        waiting.add(haste, 1, 10, now=100.01)
        work, wait = due(waiting, Pace(1.0, 100), 100.01, 0.0, busy=False, chunks=False)
        assert work is Work.WAIT
        assert wait == pytest.approx(gap - 0.01)


def test_a_batch_closes_by_age_by_rows_and_by_bytes() -> None:
    pace = Pace(1.0, 100)
    for rows, size, age, expected in (
        (1, 1, 0.9, Work.WAIT),
        (1, 1, 1.0, Work.ROLL),
        (100, 1, 0.0, Work.ROLL),
        (1, SEGMENT_BYTES, 0.0, Work.ROLL),
    ):
        waiting = Waiting()
        waiting.add(Haste.BATCH, rows, size, now=100.0)
        assert due(waiting, pace, 100.0 + age, 0.0, busy=False, chunks=False)[0] is expected, (rows, size, age)


def test_while_the_store_is_away_nothing_is_asked_of_it_but_full_batches_still_close() -> None:
    waiting = Waiting()
    waiting.add(Haste.NOW, 1, 1, now=100.0)
    assert due(waiting, Pace(1.0, 100), 105.0, 105.5, busy=True, chunks=True) == (Work.WAIT, 0.5)
    waiting.add(Haste.NOW, 100, 1, now=105.0)
    assert due(waiting, Pace(1.0, 100), 105.0, 105.5, busy=True, chunks=True)[0] is Work.ROLL


def test_an_idle_writer_waits_until_it_is_woken() -> None:
    assert due(Waiting(), PACE, 1e6, 0.0, busy=False, chunks=False) == (Work.WAIT, None)


# --- the writer at work ----------------------------------------------------------------------


def test_an_event_is_stored_at_once_and_the_steps_beside_it_with_the_batch(rig: Rig, shelf: Shelf) -> None:
    began = time.monotonic()
    rig.take(EVENT, STEP, LIVE)
    until(lambda: shelf.rows("steps"))
    until(lambda: rig.spool.size == 0)
    at = {table: when - began for when, table, _, _ in shelf.inserts}
    assert at["events"] < at["steps"]
    assert at["live"] < at["steps"]
    assert at["steps"] >= PACE.batch_seconds
    assert [len(shelf.rows(t)) for t in ("events", "live", "steps")] == [1, 1, 1]
    assert not list(rig.folder.glob("*.segment"))


def test_many_requests_within_one_batch_become_one_insert(tmp_path: Path, shelf: Shelf) -> None:
    rig = Rig(tmp_path / "spool", shelf, Pace(60.0, 1000))
    rig.writer.start()
    for i in range(200):
        rig.take(replace(STEP, step=i))
    rig.stop()
    assert len(shelf.rows("steps")) == 200
    assert len(shelf.inserts) == 1


def test_a_store_that_is_away_for_a_while_gets_each_row_once_when_it_is_back(rig: Rig, shelf: Shelf) -> None:
    shelf.before = [StoreUnavailable("away")] * 3
    shelf.after = [StoreUnavailable("stored, but the answer was lost")]
    for event in events(30):
        rig.take(event, STEP)
    until(lambda: rig.spool.size == 0)
    assert sorted(row["id"] for row in shelf.rows("events")) == sorted(e.id for e in events(30))
    assert len(shelf.rows("steps")) == 30
    assert rig.count("surefoot_ingest_insert_failures_total") == 4


def test_a_batch_that_the_store_refuses_is_put_aside_with_its_reason_and_blocks_nothing(rig: Rig, shelf: Shelf) -> None:
    shelf.refuse = lambda table: StoreError("cannot parse", 27) if table == "events" else None
    rig.take(EVENT, STEP)
    until(lambda: shelf.rows("steps"))
    until(lambda: rig.spool.size == 0)
    (file,) = (rig.folder / "quarantine").glob("*.jsonl")
    reason, row = map(json.loads, file.read_text().splitlines())
    assert (reason["table"], reason["rows"], reason["code"], reason["reason"]) == ("events", 1, 27, "StoreError: cannot parse")
    assert row["id"] == EVENT.id
    assert rig.count("surefoot_ingest_rows_total", table="events", outcome="quarantined") == 1
    assert rig.count("surefoot_ingest_rows_total", table="steps", outcome="stored") == 1


@pytest.mark.parametrize("error", [InputError("column x: out of range"), RuntimeError("a defect")], ids=["input", "defect"])
def test_also_a_defect_on_the_way_to_the_store_costs_one_batch_only(rig: Rig, shelf: Shelf, error: Exception) -> None:
    shelf.before = [error]
    rig.take(EVENT)
    rig.take(STEP)
    until(lambda: shelf.rows("steps"))
    assert len(list((rig.folder / "quarantine").glob("*.jsonl"))) == 1


def test_tables_that_do_not_exist_yet_are_waited_for(rig: Rig, shelf: Shelf) -> None:
    shelf.before = [StoreError("no such table", 60)] * 3
    rig.take(EVENT)
    until(lambda: shelf.rows("events"))
    assert not list((rig.folder / "quarantine").iterdir())


def test_an_error_that_may_pass_is_repeated_for_a_while_and_then_the_batch_is_put_aside(
    rig: Rig, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "PATIENCE", 0.3)
    shelf.refuse = lambda table: StoreError("out of memory", 241) if table == "events" else None
    rig.take(EVENT, STEP)
    until(lambda: rig.spool.size == 0)
    assert len(shelf.rows("steps")) == 1
    assert rig.count("surefoot_ingest_insert_failures_total") >= 2
    assert rig.count("surefoot_ingest_rows_total", table="events", outcome="quarantined") == 1


def test_a_device_is_written_once_and_again_by_the_next_process(tmp_path: Path, shelf: Shelf) -> None:
    body = metrics_of(NOW, ("host.load1", 1.0, {}))
    for _ in range(2):
        rig = Rig(tmp_path / "spool", shelf, Pace(0.02, 1000))
        rig.writer.start()
        for _ in range(2):
            rig.intake.take(Arrival(Form.OTLP, NOW, body, signal=Signal.METRICS))
            until(lambda: rig.spool.size == 0)  # noqa: B023
        rig.stop()
    assert len(shelf.rows("host_raw")) == 4
    assert len(shelf.rows("devices")) == 2


# --- crashes ---------------------------------------------------------------------------------


def test_what_a_dead_process_left_is_stored_by_the_next_one(tmp_path: Path, shelf: Shelf) -> None:
    dead = Rig(tmp_path / "spool", shelf)  # its writer never ran
    for event in events(10):
        dead.take(event, STEP)
    dead.spool.close()
    rig = Rig(tmp_path / "spool", shelf)
    rig.writer.start()
    until(lambda: rig.spool.size == 0)
    rig.stop()
    assert sorted(row["id"] for row in shelf.rows("events")) == sorted(e.id for e in events(10))
    assert len(shelf.rows("steps")) == 10


@pytest.mark.parametrize("answers", range(8))
def test_wherever_a_process_dies_between_inserts_the_next_one_stores_nothing_twice(tmp_path: Path, shelf: Shelf, answers: int) -> None:
    """The first process gets `answers` inserts through; the next is stored but its answer is lost, and then it dies."""
    first = Rig(tmp_path / "spool", shelf, Pace(0.05, 1000))
    stored = threading.Event()

    def refuse(table: str) -> Exception | None:
        if len(shelf.inserts) >= answers:
            stored.set()
            shelf.after = [StoreUnavailable("the answer is lost")]
        return StoreUnavailable("dead") if len(shelf.inserts) > answers else None

    shelf.refuse = refuse
    first.writer.start()
    for event in events(6):
        first.take(event, STEP, replace(LIVE, step=int(event.id[1:])))
        time.sleep(0.03)
    stored.wait(2.0)
    first.abandon()
    shelf.refuse = lambda table: None
    shelf.after = []
    second = Rig(tmp_path / "spool", shelf)
    second.writer.start()
    until(lambda: second.spool.size == 0)
    second.stop()
    assert sorted(row["id"] for row in shelf.rows("events")) == sorted(e.id for e in events(6))
    assert sorted(row["step"] for row in shelf.rows("live")) == list(range(6))
    assert len(shelf.rows("steps")) == 6


def test_a_request_whose_answer_was_lost_is_kept_once_also_by_the_next_process(tmp_path: Path, shelf: Shelf) -> None:
    rig = Rig(tmp_path / "spool", shelf, Pace(0.02, 1000))
    rig.writer.start()
    rig.take(EVENT, batch="b1")
    rig.take(EVENT, batch="b1")
    until(lambda: rig.spool.size == 0)
    rig.take(EVENT, batch="b1")
    rig.stop()
    waiting = Rig(tmp_path / "spool", shelf)  # b1 has left the spool; b2 stays in it
    waiting.take(EVENT, batch="b1")
    waiting.take(EVENT, batch="b2")
    waiting.spool.close()
    last = Rig(tmp_path / "spool", shelf)
    last.seen.load(["b2"])
    last.writer.start()
    last.take(EVENT, batch="b2")
    until(lambda: last.spool.size == 0)
    last.stop()
    assert len(shelf.rows("events")) == 2
    assert last.count("surefoot_ingest_items_total", outcome="repeated") == 1


def test_two_equal_requests_with_two_ids_are_both_kept(rig: Rig, shelf: Shelf) -> None:
    rig.take(STEP, batch="a")
    rig.take(STEP, batch="b")
    rig.take(STEP)
    rig.take(STEP)
    until(lambda: len(shelf.rows("steps")) == 4)


def test_a_request_that_could_not_be_kept_may_be_sent_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Shelf())
    rig.spool._cap = 10
    with pytest.raises(SpoolFull):
        rig.take(EVENT, batch="b1")
    rig.spool._cap = 1 << 20
    rig.take(EVENT, batch="b1")
    assert rig.spool.size > 0
    rig.spool.close()


def test_a_copy_of_a_request_that_is_being_kept_is_told_to_come_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Shelf())
    assert rig.seen.begin("b1") is Verdict.NEW
    with pytest.raises(Busy):
        rig.take(EVENT, batch="b1")
    rig.spool.close()


def test_ids_are_remembered_in_bounded_space(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen.log", capacity=100)
    for i in range(1000):
        assert seen.begin(f"b{i}") is Verdict.NEW
        seen.keep(f"b{i}")
        seen.leave([f"b{i}"])
    assert len((tmp_path / "seen.log").read_text().splitlines()) <= 201
    again = Seen(tmp_path / "seen.log", capacity=100)
    assert again.begin("b999") is Verdict.KEPT
    assert again.begin("b1") is Verdict.NEW


# --- the real store --------------------------------------------------------------------------


def test_every_kind_of_row_reaches_its_table_in_the_real_store(tmp_path: Path, store: Store) -> None:
    now = datetime.now(UTC)
    rig = Rig(tmp_path / "spool", store, Pace(0.1, 1000))
    rig.writer.start()
    readings: list[tuple[str, float, dict[str, str]]] = [
        ("host.load1", 1.5, {}),
        ("host.shm.free", 2.0**40, {}),
        ("disk.reads", 3, {"disk": "sda"}),
        ("mount.free", 7, {"mount_point": "/", "source": "x"}),
        ("custom", 0.25, {"queue": "q"}),
    ]
    live = replace(LIVE, at=now, since=now)  # rows older than two days are not kept
    rig.intake.take(Arrival(Form.OTLP, now, metrics_of(now, *readings), signal=Signal.METRICS))
    rig.intake.take(Arrival(Form.OTLP, now, logs_of(EVENT, STEP, live)))
    rig.intake.note(of_beats([Beat(component="ingest", at=now)], now))
    until(lambda: rig.spool.size == 0)
    rig.stop()
    assert not list((rig.folder / "quarantine").iterdir())
    assert store.read(Step, "SELECT * FROM steps", {}) == [STEP]
    assert store.read(Live, "SELECT * FROM live", {}) == [live]
    assert store.read(Event, "SELECT * FROM events", {}) == [EVENT]
    assert len(store.query("SELECT * FROM beats")) == 1
    (host,) = store.query("SELECT * FROM host")
    assert (host["node"], host["load1"], host["shm_free"], host["cpu_count"]) == ("n1", 1.5, 2**40, None)
    assert {r["name"] for r in store.query("SELECT name FROM devices")} == {"n1", "sda", "/ x"}
    (sample,) = store.query("SELECT metric, value, labels FROM samples INNER JOIN series USING (metric, series)")
    assert (sample["metric"], sample["value"], sample["labels"]) == ("custom", 0.25, {"host.name": "n1", "queue": "q"})
