"""What the agent sends is what ingest reads: the agent's encoder against ingest's decoder."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from exporters.collector import Site, readings_in
from exporters.encode import accept
from exporters.registry import COLLECTORS
from exporters.sending import wire
from exporters.sending.metrics import MetricMessages
from pipeline.catalog.devices import device_id
from pipeline.clock import utcnow
from pipeline.otlp import decode as otlp
from pipeline.records import AttemptFacts, AttemptTransition, Change, Event, Live, Record, RunTransition, Step

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
CHANGE: dict[str, Any] = {"old_state": "", "new_state": "started", "reason": "", "actor": "launcher:n", "at": AT, "run": "r"}
RECORDS: tuple[tuple[str, Record], ...] = (
    (
        "surefoot.step",
        Step(run="r", attempt="r-1", node="n", rank=0, step=1, started_at=AT, ended_at=AT, data=0.5, nonfinite="loss", tokens=9),
    ),
    ("surefoot.live", Live(run="r", attempt="r-1", node="n", rank=1, at=AT, pid=7, phase="data", since=AT, process_state="X", overrun=3)),
    ("surefoot.event", Event(id="1", at=AT, kind="phase", layer="framework", severity="info", code="init", duration=0.0, attrs={})),
    ("surefoot.event", Event(id="2", at=AT, kind="ring_invalid", layer="unknown", severity="warning", attrs={"path": "/a"})),
    ("surefoot.transition", RunTransition(**CHANGE, node="n", ranks=2)),
    ("surefoot.transition", AttemptTransition(**CHANGE | {"new_state": "starting"}, attempt="r-1", launch=1)),
    ("surefoot.facts", AttemptFacts(run="r", attempt="r-1", node="n", at=AT, facts={"code.argv": "x", "env.NCCL_DEBUG": "INFO"})),
    ("surefoot.change", Change(id="1", at=AT, kind="driver", what="550 -> 570", actor="ci", nodes="n1,n2")),
)


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_a_record_is_kept_as_it_was_sent(name: str, record: Record) -> None:
    body = wire.logs_request(wire.resource({"host.name": "n"}), [wire.encode_record(name, record)])
    read = otlp.decode(otlp.Signal.LOGS, otlp.ContentType.PROTOBUF, body, AT + timedelta(seconds=1))
    assert (read.rejected, read.records) == (0, {type(record): [record]}), read.message()


def test_a_log_line_is_kept_as_a_row_of_logs() -> None:
    line = wire.LogLine(AT, "step 1", {"run": "r", "attempt": "r-1", "rank": 3, "stream": "stdout"})
    body = wire.logs_request(wire.resource({"host.name": "n", "service.name": "surefoot.run"}), [wire.encode_line(line)])
    read = otlp.decode(otlp.Signal.LOGS, otlp.ContentType.PROTOBUF, body, AT)
    assert read.rejected == 0 and len(read.rows["logs"]) == 1


def test_every_reading_becomes_one_row_of_its_family_with_all_its_values(site: Site) -> None:
    for entry in COLLECTORS:
        readings = [*readings_in(entry.make(site).collect(AT))]
        accepted, _ = accept(readings)
        body = wire.metrics_request(wire.resource({"host.name": "node1"}), MetricMessages().encode(accepted, AT))
        read = otlp.decode(otlp.Signal.METRICS, otlp.ContentType.PROTOBUF, body, utcnow() if utcnow() > AT else AT)
        assert read.rejected == 0, read.message()
        stored = {f.name: {row["device_id"]: row for row in read.rows[f"{f.name}_raw"]} for f in entry.families}
        assert sum(map(len, stored.values())) == len(readings)
        for reading in readings:
            family = reading.family
            row = stored[family.name][device_id(family, reading.identity)]
            values = {family.column(m): reading.values[m.name] for m in family.metrics if reading.values[m.name] is not None}
            assert row == {"device_id": row["device_id"], "ts": AT, "node": reading.identity["node"], **values}
