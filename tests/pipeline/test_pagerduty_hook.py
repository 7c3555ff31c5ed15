"""PagerDuty's webhook: who may speak, what is understood, and what becomes of it."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from pipeline.errors import InputError, SpoolFull
from pipeline.ingest.arrivals import Arrival
from pipeline.ingest.health import Health
from pipeline.ingest.pagerduty import HEADER, MAX_BODY, PATH, Hook, asked, signed
from pipeline.otlp.decoded import Decoded
from pipeline.records import Request

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
SECRET = "whsec"
INCIDENT = "5f0c" * 8


def event(kind: str = "incident.acknowledged", agent: Any = "person", key: Any = INCIDENT, ident: str = "01BZ") -> dict[str, Any]:
    """A delivery as PagerDuty documents it, shortened."""
    person = {"id": "PXPGF42", "type": "user_reference", "summary": "Earline Greenholt"}
    return {
        "event": {
            "id": ident,
            "event_type": kind,
            "resource_type": "incident",
            "occurred_at": "2026-11-30T11:59:58.000Z",
            "agent": person if agent == "person" else agent,
            "data": {"id": "PT4KHLK", "type": "incident", "incident_key": key, "status": "acknowledged"},
        }
    }


def body(**changes: Any) -> bytes:
    return json.dumps(event(**changes)).encode()


def signature(of: bytes, secret: str = SECRET) -> str:
    return "v1=" + hmac.new(secret.encode(), of, hashlib.sha256).hexdigest()


# --- who may speak ---------------------------------------------------------------------------


def test_a_body_signed_with_the_secret_is_believed_also_among_signatures_of_other_secrets() -> None:
    assert signed(b"x", signature(b"x"), SECRET)
    assert signed(b"x", f"{signature(b'x', 'old')}, {signature(b'x')}", SECRET)


@pytest.mark.parametrize(
    "header", ["", "v1=", signature(b"y"), signature(b"x", "other"), signature(b"x")[3:], "v2=" + signature(b"x")[3:], "ü"]
)
def test_any_other_signature_is_not(header: str) -> None:
    assert not signed(b"x", header, SECRET)


def test_without_a_secret_nobody_is_believed() -> None:
    assert not signed(b"x", signature(b"x", ""), "")


def test_a_signature_worked_out_elsewhere_is_right() -> None:
    """`printf '{"a":1}' | openssl dgst -sha256 -hmac whsec`."""
    assert signed(b'{"a":1}', f"v1={OPENSSL}", "whsec")


OPENSSL = "19373ef0e8c66f206e49d251e4402291615bbce6ef00922e94a47a213fb76ee1"


# --- what is understood ----------------------------------------------------------------------


def test_a_person_who_acknowledges_there_acknowledges_here_under_their_name() -> None:
    wanted = asked(body(), NOW)
    assert wanted is not None
    assert (wanted.kind, wanted.target, wanted.actor, wanted.reason, wanted.at) == (
        *("acknowledge", INCIDENT, "Earline Greenholt (PagerDuty)", "acknowledged in PagerDuty"),
        NOW,
    )


def test_a_person_who_resolves_there_is_told_as_one_who_knows() -> None:
    wanted = asked(body(kind="incident.resolved"), NOW)
    assert wanted is not None and (wanted.kind, wanted.reason) == ("acknowledge", "resolved in PagerDuty")


def test_the_second_alert_of_an_incident_leads_to_the_incident() -> None:
    wanted = asked(body(key=f"{INCIDENT}:stopped"), NOW)
    assert wanted is not None and wanted.target == INCIDENT


def test_the_same_event_twice_is_one_intent_and_two_events_are_two() -> None:
    first, again, other = (asked(body(ident=i), NOW) for i in ("01BZ", "01BZ", "01CA"))
    assert first and again and other
    assert first.intent == again.intent != other.intent


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "incident.triggered"},
        {"kind": "pagey.ping"},
        {"agent": {"type": "inbound_integration_reference", "summary": "Surefoot"}},  # the echo of our own event
        {"agent": {"type": "service_reference"}},
        {"agent": None},
        {"key": None},
        {"key": ""},
    ],
)
def test_what_no_person_did_to_an_alert_of_ours_asks_for_nothing(changes: dict[str, Any]) -> None:
    assert asked(body(**changes), NOW) is None


@pytest.mark.parametrize(
    "given", [b"", b"{", b"[]", b"{}", b'{"event": 3}', b'{"event": {"id": 7, "event_type": "x"}}', b"\xff", b"[" * 99_999]
)
def test_what_is_no_webhook_is_refused(given: bytes) -> None:
    with pytest.raises(InputError, match="no PagerDuty V3 webhook"):
        asked(given, NOW)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=20
    )
)
def test_no_json_at_all_does_more_than_be_refused(anything: Any) -> None:
    for given_ in (anything, {"event": anything}, {"event": {**event()["event"], "agent": anything, "data": anything}}):
        try:
            wanted = asked(json.dumps(given_).encode(), NOW)
        except InputError:
            continue
        assert wanted is None or wanted.kind == "acknowledge"


# --- the endpoint ----------------------------------------------------------------------------


class Kept:
    """An intake that remembers what it took, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.arrivals: list[Arrival] = []
        self._error = error

    def take(self, arrival: Arrival) -> Decoded:
        if self._error:
            raise self._error
        self.arrivals.append(arrival)
        return arrival.decode()


@contextmanager
def client(intake: Any, secret: str = SECRET) -> Iterator[TestClient]:
    hook = Hook(intake, Health(lambda: 0, lambda: None), secret, lambda: NOW)
    with TestClient(Starlette(routes=[Route(PATH, hook.answer, methods=["POST"])])) as made:
        yield made


def test_a_signed_acknowledgement_is_kept_once_it_is_answered_and_reads_back_as_the_request() -> None:
    kept = Kept()
    with client(kept) as to:
        answer = to.post(PATH, content=body(), headers={HEADER: signature(body())})
    assert (answer.status_code, answer.json()) == (200, {"status": "asked for"})
    (arrival,) = kept.arrivals
    (row,) = Arrival.from_bytes(arrival.to_bytes()).decode().records[Request]
    assert row == asked(body(), NOW)
    assert arrival.batch == f"request-{row.intent}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("secret", [SECRET, ""])
def test_an_unsigned_delivery_is_refused_before_it_is_read(secret: str) -> None:
    kept = Kept()
    with client(kept, secret) as to:
        assert to.post(PATH, content=b"{", headers={HEADER: signature(b"other")}).status_code == 401
        assert to.post(PATH, content=body()).status_code == 401
    assert not kept.arrivals


def test_what_asks_for_nothing_is_answered_200_so_that_it_is_not_sent_again() -> None:
    kept, ping = Kept(), body(kind="pagey.ping")
    with client(kept) as to:
        assert to.post(PATH, content=ping, headers={HEADER: signature(ping)}).status_code == 200
    assert not kept.arrivals


def test_too_large_a_body_is_refused_and_a_full_spool_says_come_back() -> None:
    huge = b" " * (MAX_BODY + 1)
    with client(Kept()) as to:
        assert to.post(PATH, content=huge, headers={HEADER: signature(huge)}).status_code == 413
        assert to.post(PATH, content=b"[]", headers={HEADER: signature(b"[]")}).status_code == 400
    with client(Kept(SpoolFull("full"))) as to:
        assert to.post(PATH, content=body(), headers={HEADER: signature(body())}).status_code == 503
