"""Text from outside: one bad label costs neither the page nor the other series (LESSONS C33)."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading
from exporters.encode import accept, prometheus_text
from exporters.labels import clean_event, label_name, readable
from exporters.sending.wire import encode_record
from pipeline.catalog.metrics import DISK
from pipeline.records import Event

AT = datetime(2026, 11, 30, tzinfo=UTC)
WELL = Reading(DISK, {"node": "n", "disk": "sdb"}, {"disk.reads": 7})


def page(*readings: Reading) -> dict[str, dict[str, str]]:
    """The labels of each value of disk.reads, by value, as Prometheus' own parser reads them."""
    text = prometheus_text(accept(readings)[0])
    assert len(text.splitlines()) == len(text.split("\n")) - 1, "no line end but the line feed"
    return {str(float(s.value)): dict(s.labels) for family in text_string_to_metric_families(text) for s in family.samples}


def test_quotes_nul_bad_utf_8_and_line_separators_cost_nothing_but_their_own_looks() -> None:
    bad = Reading(DISK, {"node": "n", "disk": 'exp "70B"\u2028x\x00\udcff\\\n'}, {"disk.reads": 5}, {"model": "a\rb"})
    assert page(bad, WELL) == {
        "5.0": {"node": "n", "disk": 'exp "70B"\\u2028x\\x00\\udcff\\\\x0a', "model": "a\\x0db"},
        "7.0": {"node": "n", "disk": "sdb"},
    }


def test_names_of_labels_are_names_and_none_comes_twice() -> None:
    odd = Reading(DISK, {"node": "n", "disk": "sda"}, {"disk.reads": 5}, {"disk": "x", "a-b": "1", "a.b": "2", "9": "3", "": "4", "é": "5"})
    assert page(odd, WELL)["5.0"] == {"node": "n", "disk": "sda", "a_b": "1", "_9": "3", "_": "4"}
    assert [label_name(name) for name in ("le", "a b", "9x", "")] == ["le", "a_b", "_9x", "_"]


@given(disk=st.text(st.characters()), name=st.text(st.characters()), value=st.text(st.characters()))
def test_whatever_a_label_holds_the_page_can_be_read_and_the_other_series_is_there(disk: str, name: str, value: str) -> None:
    found = page(Reading(DISK, {"node": "n", "disk": f"!{disk}"}, {"disk.reads": 5}, {name: value}), WELL)
    assert found["7.0"] == {"node": "n", "disk": "sdb"}
    assert found["5.0"]["disk"].startswith("!") and found["5.0"]["node"] == "n"


def test_an_events_names_are_made_safe_its_text_keeps_its_lines_and_its_id_stays() -> None:
    given_: dict[str, Any] = {"at": AT, "kind": "oom_kill", "layer": "kernel", "severity": "critical"}
    event = Event(id="1", device="sd\u2028a", code="\x00", message="a\n\tb\x00\u2029", attrs={"k\n": "v\udc80\nw"}, **given_)
    cleaned = clean_event(event)
    assert (cleaned.id, cleaned.device, cleaned.code) == ("1", "sd\\u2028a", "\\x00")
    assert (cleaned.message, cleaned.attrs) == ("a\n\tb\\x00\\u2029", {"k\\x0a": "v\\udc80\nw"})
    assert LogRecord.FromString(encode_record("surefoot.event", cleaned)).event_name == "surefoot.event"
    assert readable("plain") == "plain"
