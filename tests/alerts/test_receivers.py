"""What receivers put on the wire, against the limits that the services document."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from structlog.testing import capture_logs
from werkzeug import Request, Response

from alerts.receivers import log, pagerduty, webhook
from alerts.receivers.fit import details_that_fit, encode
from alerts.receivers.page import Page
from alerts.receivers.registry import KINDS, receivers, wants
from pipeline.errors import DeliveryError, SettingsError
from pipeline.settings import ReceiverSettings

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)


def page(**changes: Any) -> Page:
    fields: dict[str, Any] = {
        "dedup_key": "5f0c",
        "event": "trigger",
        "severity": "critical",
        "summary": "rank 1 on n1 died: SIGKILL",
        "source": "n1",
        "component": "rank 1",
        "group": "run-a",
        "cls": "rank_crash",
        "at": AT,
        "links": (("Incident", "http://127.0.0.1:8501/incident?incident=5f0c"),),
        "details": {"attempt": "run-a-1", "confidence": "1.0"},
    }
    return Page(**(fields | changes))


def sent(given: Page) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(pagerduty.render(given, "K" * 32))
    return body


def test_a_trigger_is_what_pagerdutys_events_api_documents() -> None:
    link = "http://127.0.0.1:8501/incident?incident=5f0c"
    assert sent(page()) == {
        "routing_key": "K" * 32,
        "event_action": "trigger",
        "dedup_key": "5f0c",
        "client": "Surefoot",
        "client_url": link,
        "links": [{"href": link, "text": "Incident"}],
        "payload": {
            "summary": "rank 1 on n1 died: SIGKILL",
            "source": "n1",
            "severity": "critical",
            "timestamp": "2026-11-30T12:00:00.123+00:00",
            "component": "rank 1",
            "group": "run-a",
            "class": "rank_crash",
            "custom_details": {"attempt": "run-a-1", "confidence": "1.0"},
        },
    }


@pytest.mark.parametrize("event", ["acknowledge", "resolve"])
def test_acknowledge_and_resolve_carry_the_key_and_what_is_useful_then(event: str) -> None:
    body = sent(page(event=event, summary="Resolved after 6.4 s: rank 1 on n1 died"))
    assert (body["event_action"], body["dedup_key"]) == (event, "5f0c")
    assert body["payload"]["summary"] == "Resolved after 6.4 s: rank 1 on n1 died"
    assert body["payload"]["custom_details"] == {"attempt": "run-a-1", "confidence": "1.0"}
    assert len(pagerduty.render(page(event=event, details={"a": "大" * 200_000}), "K")) <= 512_000


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=3))])
def test_the_timestamp_is_valid_iso_8601_and_the_same_instant_in_every_zone(zone: timezone) -> None:
    text = sent(page(at=AT.astimezone(zone)))["payload"]["timestamp"]
    assert datetime.fromisoformat(text) == AT.replace(microsecond=123000)
    assert not text.endswith("+00:00Z")


def test_a_long_summary_is_cut_to_1024_characters_not_bytes() -> None:
    assert sent(page(summary="大" * 1024))["payload"]["summary"] == "大" * 1024
    cut = sent(page(summary="大" * 1025))["payload"]["summary"]
    assert cut == "大" * 1023 + "…"


def test_a_long_dedup_key_is_hashed_so_that_two_keys_with_one_beginning_stay_two() -> None:
    first, second = (sent(page(dedup_key="x" * 300 + end))["dedup_key"] for end in "ab")
    assert first != second
    assert len(first.encode()) <= 255
    assert sent(page(dedup_key="x" * 300 + "a", event="resolve"))["dedup_key"] == first
    assert sent(page(dedup_key="x" * 255))["dedup_key"] == "x" * 255


def test_details_over_512000_bytes_are_cut_value_by_value_first() -> None:
    details = sent(page(details={"stack": "y" * 600_000, "rank": "1"}))["payload"]["custom_details"]
    assert details["rank"] == "1"
    assert details["stack"] == "y" * 1023 + "…"


def test_of_details_that_do_not_fit_even_then_the_first_are_kept_and_a_note_says_so() -> None:
    raw = pagerduty.render(page(details={f"k{n}": "大" * 1000 for n in range(300)}), "K")
    assert len(raw) <= 512_000
    details = json.loads(raw)["payload"]["custom_details"]
    assert details.pop("note").startswith("details left out: ")
    assert list(details) == [f"k{n}" for n in range(len(details))], "the first of them are there, whole"
    assert set(details.values()) == {"大" * 1000}
    assert 512_000 - len(raw) < 3100, "and as many as fit"


NAMES = st.text(max_size=40).filter(lambda name: name != "note")


@given(st.dictionaries(NAMES, st.text(max_size=3000), max_size=12), st.integers(120, 20_000))
def test_details_always_fit_and_are_cut_at_characters_from_the_end(details: dict[str, str], room: int) -> None:
    kept = details_that_fit(details, room)
    assert len(encode(kept)) <= room
    assert set(json.loads(encode(kept))) == {k.encode("utf-8", "replace").decode() for k in kept}
    whole = [k for k in kept if k != "note"]
    assert whole == list(details)[: len(whole)], "in their order, the first ones"
    assert all(kept[k] in (details[k], details[k][:1023] + "…") for k in whole)
    assert len(whole) == len(details) or "note" in kept


def test_the_limit_counts_bytes_where_characters_would_fit() -> None:
    """171,000 three-byte characters are 513,000 bytes."""
    assert len(pagerduty.render(page(details={"a": "大" * 171_000}), "K")) <= 512_000


def test_a_body_exactly_at_the_limit_is_sent_whole() -> None:
    empty = len(pagerduty.render(page(details={"a": ""}), "K"))
    raw = pagerduty.render(page(details={"a": "y" * (512_000 - empty)}), "K")
    assert len(raw) == 512_000


def test_text_that_utf8_cannot_hold_still_pages() -> None:
    body = sent(page(summary='exp "70B"\u2028\x00\ud800', details={"a\udfff": "\ud800"}))
    assert body["payload"]["summary"] == 'exp "70B"\u2028\x00?'


def test_an_empty_summary_or_source_is_filled_since_pagerduty_refuses_it() -> None:
    payload = sent(page(summary="", source=""))["payload"]
    assert payload["summary"] == "rank_crash on unknown"
    assert payload["source"] == "unknown"


def test_a_severity_pagerduty_does_not_know_becomes_error() -> None:
    assert sent(page(severity="fatal"))["payload"]["severity"] == "error"


def test_a_webhook_event_is_a_structured_cloudevent() -> None:
    event = json.loads(webhook.render(page(), "5f0c:trigger:0:hook"))
    assert {k: event[k] for k in ("specversion", "id", "type", "subject", "time", "datacontenttype")} == {
        "specversion": "1.0",
        "id": "5f0c:trigger:0:hook",
        "type": "surefoot.incident.trigger",
        "subject": "5f0c",
        "time": "2026-11-30T12:00:00.123456+00:00",
        "datacontenttype": "application/json",
    }
    assert event["source"]
    assert all(name.isalnum() and name.islower() for name in event), "CloudEvents attribute names are lower-case letters and digits"
    assert event["data"]["details"] == {"attempt": "run-a-1", "confidence": "1.0"}


def test_a_webhook_gets_its_content_type_and_token(httpserver: HTTPServer) -> None:
    headers = {"Content-Type": webhook.CONTENT_TYPE, "Authorization": "Bearer s3cret"}
    httpserver.expect_oneshot_request("/in", method="POST", headers=headers).respond_with_data("", 204)
    made = receivers([ReceiverSettings(kind="webhook", url=httpserver.url_for("/in"), key="s3cret")])
    assert made["webhook"].send("n1", page()) == "204"
    httpserver.check_assertions()


@pytest.mark.parametrize("key", ["s3cret", ""])
def test_a_receiver_gets_no_log_in_from_the_netrc_of_whoever_runs_the_leader(
    httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (tmp_path / "netrc").write_text("default login me password mine\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    httpserver.expect_request("/in").respond_with_data("", 204)
    receivers([ReceiverSettings(kind="webhook", url=httpserver.url_for("/in"), key=key)])["webhook"].send("n1", page())
    ((request, _),) = httpserver.log
    assert request.headers.get("Authorization") == (f"Bearer {key}" if key else None)


@pytest.mark.parametrize(
    ("status", "headers", "permanent", "retry_after"),
    [
        (400, {}, True, None),
        (403, {}, True, None),
        (302, {"Location": "/elsewhere"}, True, None),
        (400, {"Retry-After": "5"}, True, None),
        (408, {}, False, None),
        (429, {"Retry-After": "17"}, False, 17.0),
        (429, {"Retry-After": "soon"}, False, None),
        (500, {}, False, None),
        (503, {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, False, 0.0),
    ],
)
def test_only_what_may_pass_is_retried(
    httpserver: HTTPServer, status: int, headers: dict[str, str], permanent: bool, retry_after: float | None
) -> None:
    httpserver.expect_request("/in").respond_with_data("said why", status, headers)
    made = receivers([ReceiverSettings(kind="pagerduty", key="K", url=httpserver.url_for("/in"))])
    with pytest.raises(DeliveryError, match=f"{status} said why") as caught:
        made["pagerduty"].send("n", page())
    assert (caught.value.permanent, caught.value.retry_after) == (permanent, retry_after)


def test_an_endless_answer_is_not_read_to_its_end(httpserver: HTTPServer) -> None:
    def endless(request: Request) -> Response:
        return Response((b"x" * 1024 for _ in range(10_000)), 202)

    httpserver.expect_request("/in").respond_with_handler(endless)
    made = receivers([ReceiverSettings(kind="webhook", url=httpserver.url_for("/in"))])
    assert len(made["webhook"].send("n", page())) < 400


def test_an_address_that_is_none_is_a_permanent_error() -> None:
    made = receivers([ReceiverSettings.model_construct(kind="webhook", url="not an address")])  # settings would refuse it before
    with pytest.raises(DeliveryError) as caught:
        made["webhook"].send("n", page())
    assert caught.value.permanent


def test_an_error_names_its_cause_and_keeps_the_address_to_itself() -> None:
    made = receivers([ReceiverSettings(kind="webhook", url="http://127.0.0.1:9/hooks/T0/s3cret")])
    with pytest.raises(DeliveryError, match="Connection refused") as caught:
        made["webhook"].send("n", page())
    assert "s3cret" not in str(caught.value)
    assert not caught.value.permanent


def test_the_log_receiver_writes_one_line_at_the_pages_level() -> None:
    made = receivers([ReceiverSettings(kind="log")])
    with capture_logs() as lines:
        assert made["log"].send("n", page()) == "logged"
        made["log"].send("n", page(event="resolve"))
    assert [(line["log_level"], line["page"], line["dedup_key"], line["class"]) for line in lines] == [
        ("critical", "trigger", "5f0c", "rank_crash"),
        ("info", "resolve", "5f0c", "rank_crash"),
    ]
    assert lines[0]["link"] == "http://127.0.0.1:8501/incident?incident=5f0c"


def test_every_kind_of_the_settings_has_its_receiver_and_none_is_left_over() -> None:
    assert set(KINDS) == set(ReceiverSettings.model_fields["kind"].annotation.__args__)  # type: ignore[union-attr]
    for module in (log, pagerduty, webhook):
        assert module.__name__.rpartition(".")[2] in KINDS


def test_receivers_without_names_are_told_apart() -> None:
    made = receivers([ReceiverSettings(kind="log"), ReceiverSettings(kind="log"), ReceiverSettings(kind="log", name="desk")])
    assert list(made) == ["log", "log-2", "desk"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([ReceiverSettings(kind="log", name="a"), ReceiverSettings(kind="log", name="a")], "two are named a"),
    ],
)
def test_a_receiver_that_cannot_work_is_refused_with_what_to_do(given: list[ReceiverSettings], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        receivers(given)


def test_a_receiver_wants_its_severity_and_worse() -> None:
    made = receivers([ReceiverSettings(kind="log", min_severity="error")])["log"]
    assert [wants(made, s) for s in ("critical", "error", "warning", "info")] == [True, True, False, False]


@pytest.mark.parametrize("changes", [{"dedup_key": ""}, {"event": "open"}, {"at": datetime(2026, 1, 1)}])  # noqa: DTZ001
def test_a_page_that_could_not_be_resolved_or_dated_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"dedup key|unknown page event|naive"):
        page(**changes)
