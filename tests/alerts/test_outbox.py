"""The outbox and its delivery, against a real HTTP server and a real kill -9."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Lock

import pytest
import structlog
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from alerts import delivery
from alerts.outbox import Outbox, OutboxError, Result
from alerts.receivers.page import Page
from alerts.receivers.registry import receivers
from pipeline.errors import StoreUnavailable
from pipeline.settings import ReceiverSettings
from surefoot.drill.stack import free_ports

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
REPOSITORY = Path(__file__).parents[2]


def page(event: str = "trigger", key: str = "k1", summary: str = "rank 1 died", severity: str = "critical") -> Page:
    return Page(dedup_key=key, event=event, severity=severity, summary=summary, source="n1", at=NOW)  # type: ignore[arg-type]


def put(outbox: Outbox, notification: str, given: Page, now: datetime = NOW, receiver: str = "pagerduty") -> bool:
    return outbox.enqueue(notification, receiver=receiver, incident=given.dedup_key, page=given, now=now)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    made = Outbox(tmp_path / "outbox.sqlite")
    yield made
    made.close()


class Stub:
    """A receiver's far end: answers in order what it is told to (last answer for ever), and keeps what it got."""

    def __init__(self, server: HTTPServer, *answers: Response) -> None:
        self._answers, self._lock = list(answers) or [Response("taken", 202)], Lock()
        self.got: list[tuple[float, dict[str, str]]] = []
        self.url = server.url_for("/v2/enqueue")
        server.expect_request("/v2/enqueue", method="POST").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        with self._lock:
            self.got.append((time.monotonic(), json.loads(request.get_data())))
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(body["event_action"], body["dedup_key"]) for _, body in self.got]


@contextmanager
def delivering(outbox: Outbox, url: str, results: list[Result]) -> Iterator[delivery.Delivery]:
    made = receivers([ReceiverSettings(kind="pagerduty", key="R" * 32, url=url)])
    running = delivery.start(outbox, made, results.append)
    try:
        yield running
    finally:
        running.stop()


# --- the file ------------------------------------------------------------------------------------


def test_the_same_notification_queued_twice_is_kept_once(outbox: Outbox) -> None:
    assert put(outbox, "a", page()) is True
    assert put(outbox, "a", page(summary="changed")) is False
    assert [q.page.summary for q in outbox.due("pagerduty", NOW)] == ["rank 1 died"]


def test_what_was_queued_is_there_after_reopening(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "o.sqlite")
    given = Page(
        dedup_key="k",
        event="trigger",
        severity="error",
        summary="Größe 大 \u2028",
        source="n",
        at=NOW,
        links=(("Incident", "http://c/incident?incident=k"),),
        details={"a": "b"},
    )
    put(first, "a", given)
    first.close()
    second = Outbox(tmp_path / "o.sqlite")
    assert second.due("pagerduty", NOW)[0].page == given
    assert (tmp_path / "o.sqlite").stat().st_mode & 0o077 == 0
    second.close()


def test_only_the_oldest_of_a_key_is_due_and_other_keys_are_not_held_up(outbox: Outbox) -> None:
    put(outbox, "a", page())
    put(outbox, "b", page("resolve"))
    put(outbox, "c", page(key="k2"))
    assert [q.notification for q in outbox.due("pagerduty", NOW)] == ["a", "c"]


def test_the_worst_severity_goes_first(outbox: Outbox) -> None:
    put(outbox, "a", page(key="k1", severity="warning"))
    put(outbox, "b", page(key="k2", severity="critical"))
    assert [q.notification for q in outbox.due("pagerduty", NOW)] == ["b", "a"]


def test_a_trigger_waiting_for_its_retry_holds_its_resolve(outbox: Outbox) -> None:
    put(outbox, "a", page())
    put(outbox, "b", page("resolve"))
    (head,) = outbox.due("pagerduty", NOW)
    assert outbox.begin(head, "bucket", NOW, NOW + timedelta(seconds=5)) == 0.0
    outbox.mark_retry(head, NOW + timedelta(seconds=30), "503")
    assert outbox.due("pagerduty", NOW + timedelta(seconds=29)) == []
    (again,) = outbox.due("pagerduty", NOW + timedelta(seconds=30))
    assert (again.notification, again.tries) == ("a", 1)
    outbox.mark_sent(again, NOW, "202")
    assert [q.notification for q in outbox.due("pagerduty", NOW)] == ["b"]


def test_a_resolve_is_dropped_with_its_reason_once_its_trigger_failed_for_good(outbox: Outbox) -> None:
    put(outbox, "a", page())
    put(outbox, "b", page("acknowledge"))
    put(outbox, "c", page("resolve"))
    outbox.mark_failed(outbox.due("pagerduty", NOW)[0], NOW, "400 invalid")
    assert outbox.due("pagerduty", NOW) == []
    assert [(r.notification, r.state, r.reason) for r in outbox.unreported("pagerduty")] == [
        ("a", "failed", "400 invalid"),
        ("b", "failed", "left out: its trigger was never delivered"),
        ("c", "failed", "left out: its trigger was never delivered"),
    ]


def test_a_resolve_whose_trigger_this_outbox_never_saw_is_sent(outbox: Outbox) -> None:
    put(outbox, "c", page("resolve"))
    assert [q.notification for q in outbox.due("pagerduty", NOW)] == ["c"]


def test_a_new_trigger_after_a_resolve_starts_a_new_alert(outbox: Outbox) -> None:
    """The trigger of the second alert fails; the first alert's success must not let its resolve through."""
    for name, event in [("a", "trigger"), ("b", "resolve"), ("c", "trigger"), ("d", "resolve")]:
        put(outbox, name, page(event))
        head = outbox.due("pagerduty", NOW)
        if name == "c":
            outbox.mark_failed(head[0], NOW, "400")
        elif head:
            outbox.mark_sent(head[0], NOW, "202")
    assert outbox.states() == {"a": "sent", "b": "sent", "c": "failed", "d": "failed"}


def test_triggers_that_wait_together_are_sent_as_one_the_newest(outbox: Outbox) -> None:
    put(outbox, "a", page(summary="2 ranks"))
    put(outbox, "b", page(summary="5 ranks"))
    put(outbox, "c", page(summary="9 ranks"))
    put(outbox, "d", page("resolve"))
    (head,) = outbox.due("pagerduty", NOW)
    assert head.page.summary == "9 ranks"
    outbox.begin(head, "bucket", NOW, NOW)
    outbox.mark_sent(head, NOW, "202")
    assert outbox.states() == {"a": "sent", "b": "sent", "c": "sent", "d": "queued"}
    assert [r.tries for r in outbox.unreported("pagerduty")] == [1, 1, 1]


def test_a_newer_trigger_does_not_jump_the_wait_that_the_receiver_asked_for(outbox: Outbox) -> None:
    put(outbox, "a", page())
    (head,) = outbox.due("pagerduty", NOW)
    outbox.begin(head, "bucket", NOW, NOW)
    outbox.mark_retry(head, NOW + timedelta(seconds=60), "429")
    put(outbox, "b", page(summary="worse"))
    put(outbox, "c", page(summary="worst"))
    assert outbox.due("pagerduty", NOW + timedelta(seconds=59)) == []
    (later,) = outbox.due("pagerduty", NOW + timedelta(seconds=60))
    assert (later.page.summary, later.tries) == ("worst", 1)


def test_the_hundred_and_first_page_of_a_minute_waits_also_after_a_restart(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "o.sqlite")
    for n in range(101):
        put(first, f"n{n}", page(key=f"k{n}"))
    heads = first.due("pagerduty", NOW)
    assert [first.begin(q, "bucket", NOW, NOW) for q in heads[:100]] == [0.0] * 100
    first.close()
    second = Outbox(tmp_path / "o.sqlite")
    assert second.begin(heads[100], "bucket", NOW + timedelta(seconds=20), NOW) == 40.0
    assert second.begin(heads[100], "another key", NOW + timedelta(seconds=20), NOW) == 0.0
    assert second.begin(heads[100], "bucket", NOW + timedelta(seconds=60), NOW) == 0.0
    second.close()


def test_a_clock_set_back_does_not_count_sends_of_the_future(outbox: Outbox) -> None:
    put(outbox, "a", page())
    (head,) = outbox.due("pagerduty", NOW)
    for _ in range(100):
        outbox.begin(head, "bucket", NOW, NOW)
    assert outbox.begin(head, "bucket", NOW - timedelta(hours=1), NOW) == 0.0


def test_an_outbox_that_cannot_be_opened_says_which(tmp_path: Path) -> None:
    (tmp_path / "o.sqlite").mkdir()
    with pytest.raises(OutboxError, match=r"o\.sqlite"):
        Outbox(tmp_path / "o.sqlite")


# --- delivery ------------------------------------------------------------------------------------


def test_trigger_and_resolve_arrive_in_order_under_one_key_and_are_told_back(outbox: Outbox, httpserver: HTTPServer) -> None:
    stub, results = Stub(httpserver), list[Result]()
    with delivering(outbox, stub.url, results):
        put(outbox, "a", page(), datetime.now(UTC))
        put(outbox, "b", page("resolve"), datetime.now(UTC))
        assert until(lambda: len(results) == 2)
    assert stub.events == [("trigger", "k1"), ("resolve", "k1")]
    assert [(r.notification, r.event, r.state, r.tries, r.reason) for r in results] == [
        ("a", "trigger", "sent", 1, "202 taken"),
        ("b", "resolve", "sent", 1, "202 taken"),
    ]


def test_a_page_goes_out_at_once_while_delivery_sleeps(outbox: Outbox, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "IDLE", 3600.0)  # it would sleep for much longer than is waited here
    stub = Stub(httpserver)
    with delivering(outbox, stub.url, []):
        time.sleep(0.3)
        put(outbox, "a", page(), datetime.now(UTC))
        assert until(lambda: bool(stub.got))


def test_a_429_is_retried_after_what_it_asks_for_and_other_pages_of_the_key_wait_too(outbox: Outbox, httpserver: HTTPServer) -> None:
    stub, results = Stub(httpserver, Response("slow down", 429, {"Retry-After": "2"}), Response("taken", 202)), list[Result]()
    with delivering(outbox, stub.url, results):
        put(outbox, "a", page(), datetime.now(UTC))
        assert until(lambda: len(stub.got) == 1)
        put(outbox, "b", page(key="k2"), datetime.now(UTC))
        assert until(lambda: len(results) == 2)
    assert stub.got[1][0] - stub.got[0][0] >= 2.0
    assert {r.notification: r.tries for r in results} == {"a": 2, "b": 1}


def test_a_500_is_retried_until_it_is_taken(outbox: Outbox, httpserver: HTTPServer) -> None:
    stub, results = Stub(httpserver, Response("oops", 500), Response("oops", 502), Response("taken", 202)), list[Result]()
    with delivering(outbox, stub.url, results):
        put(outbox, "a", page(), datetime.now(UTC))
        assert until(lambda: bool(results))
    assert [(r.state, r.tries) for r in results] == [("sent", 3)]


def test_a_400_is_final_and_its_resolve_is_never_sent(outbox: Outbox, httpserver: HTTPServer) -> None:
    stub, results = Stub(httpserver, Response('{"status":"invalid event"}', 400)), list[Result]()
    with delivering(outbox, stub.url, results):
        put(outbox, "a", page(), datetime.now(UTC))
        put(outbox, "b", page("resolve"), datetime.now(UTC))
        assert until(lambda: len(results) == 2)
    assert stub.events == [("trigger", "k1")]
    assert [(r.state, r.reason) for r in results] == [
        ("failed", '400 {"status":"invalid event"}'),
        ("failed", "left out: its trigger was never delivered"),
    ]


def test_a_page_outlives_a_network_that_is_down(outbox: Outbox) -> None:
    port = free_ports(1)[0]
    results: list[Result] = []
    with structlog.testing.capture_logs() as logs, delivering(outbox, f"http://127.0.0.1:{port}/v2/enqueue", results):
        put(outbox, "a", page(), datetime.now(UTC))
        assert until(lambda: "page_not_taken" in [entry["event"] for entry in logs])
        with HTTPServer(port=port) as server:
            stub = Stub(server)
            assert until(lambda: bool(results))
    assert stub.events == [("trigger", "k1")]
    assert results[0].tries >= 2


def test_an_outcome_that_could_not_be_written_is_told_again(outbox: Outbox, httpserver: HTTPServer) -> None:
    stub, told, seen = Stub(httpserver), list[Result](), Event()

    def on_result(result: Result) -> None:
        told.append(result)
        if len(told) == 1:
            raise StoreUnavailable("the store is away")
        seen.set()

    running = delivery.start(outbox, receivers([ReceiverSettings(kind="pagerduty", key="R", url=stub.url)]), on_result)
    put(outbox, "a", page(), datetime.now(UTC))
    assert seen.wait(30)
    running.stop()
    assert [r.notification for r in told] == ["a", "a"]
    assert len(stub.got) == 1
    assert outbox.unreported("pagerduty") == []


def test_a_receiver_that_hangs_delays_no_other(outbox: Outbox, httpserver: HTTPServer) -> None:
    release = Event()

    def hang(request: Request) -> Response:
        release.wait(60)
        return Response("late", 202)

    httpserver.expect_request("/hook").respond_with_handler(hang)
    stub, results = Stub(httpserver), list[Result]()
    made = receivers(
        [ReceiverSettings(kind="webhook", url=httpserver.url_for("/hook")), ReceiverSettings(kind="pagerduty", key="R", url=stub.url)]
    )
    httpserver_threads_needed = HTTPServer(threaded=True)
    with httpserver_threads_needed as second:
        free = Stub(second)
        made |= receivers([ReceiverSettings(kind="pagerduty", key="R", url=free.url)])
        running = delivery.start(outbox, made, results.append)
        put(outbox, "w", page(), datetime.now(UTC), receiver="webhook")
        put(outbox, "p", page(), datetime.now(UTC))
        assert until(lambda: bool(free.got))
        release.set()
        assert until(lambda: len(results) == 2)
        running.stop()


KILLED = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from alerts import delivery
from alerts.outbox import Outbox
from alerts.receivers.page import Page
from alerts.receivers.registry import receivers
from pipeline.settings import ReceiverSettings
path, url = sys.argv[1:]
outbox, now = Outbox(Path(path)), datetime.now(UTC)
for event in ("trigger", "resolve"):
    outbox.enqueue(event, receiver="pagerduty", incident="i1", now=now,
                   page=Page(dedup_key="i1", event=event, severity="critical", summary="s", source="n1", at=now))
delivery.start(outbox, receivers([ReceiverSettings(kind="pagerduty", key="R", url=url)]), lambda result: None)
time.sleep(60)
"""


def test_a_kill_between_send_and_mark_repeats_the_page_under_the_same_key_and_loses_nothing(tmp_path: Path, httpserver: HTTPServer) -> None:
    """The far end has taken the trigger, but the process dies before it hears so."""
    got: list[tuple[str, str]] = []

    def first_answer_comes_too_late(request: Request) -> Response:
        body = json.loads(request.get_data())
        got.append((body["event_action"], body["dedup_key"]))
        if len(got) == 1:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        return Response("taken", 202)

    httpserver.expect_request("/v2/enqueue").respond_with_handler(first_answer_comes_too_late)
    url, path = httpserver.url_for("/v2/enqueue"), tmp_path / "o.sqlite"
    child = subprocess.Popen([sys.executable, "-P", "-c", KILLED, str(path), url], env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert until(lambda: len(got) == 1, 60)
    assert child.wait(30) == -signal.SIGKILL

    outbox, results = Outbox(path), list[Result]()
    assert outbox.states() == {"trigger": "queued", "resolve": "queued"}
    with delivering(outbox, url, results):
        assert until(lambda: len(results) == 2)
    outbox.close()
    assert got == [("trigger", "i1"), ("trigger", "i1"), ("resolve", "i1")]
    assert [(r.notification, r.state, r.tries) for r in results] == [("trigger", "sent", 2), ("resolve", "sent", 1)]
