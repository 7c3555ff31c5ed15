"""The agent's web pages, asked by a real client."""

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from exporters import pages
from exporters.pages import MAX_CONNECTIONS, Board, PageServer
from pipeline.errors import SettingsError


@pytest.fixture
def server() -> Iterator[PageServer]:
    made = PageServer("127.0.0.1", 0, {"/metrics": lambda: (200, 'x{a="é"} 1\n'), "/healthz": lambda: (503, "held up\n")})
    yield made
    made.close()


def get(server: PageServer, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.headers["Content-Type"], e.read().decode()


def test_metrics_come_as_prometheus_text_and_health_with_its_reason(server: PageServer) -> None:
    assert get(server, "/metrics?x=1") == (200, "text/plain; version=0.0.4; charset=utf-8", 'x{a="é"} 1\n')
    assert get(server, "/healthz")[::2] == (503, "held up\n")
    assert get(server, "/etc/passwd")[0] == 404


def test_clients_that_say_nothing_hold_a_bounded_number_of_threads(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages._Handler, "timeout", 60.0)  # none of those that are held is let go meanwhile
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(MAX_CONNECTIONS + 5)]
    try:
        end = time.monotonic() + 30
        closed = 0
        while closed < 5 and time.monotonic() < end:
            closed = 0
            for s in silent:
                s.settimeout(0.01)
                try:
                    closed += s.recv(1) == b""
                except TimeoutError:
                    pass
                except ConnectionResetError:
                    closed += 1
        assert closed == 5
    finally:
        for s in silent:
            s.close()


def test_an_address_in_use_is_refused_with_what_to_do(server: PageServer) -> None:
    with pytest.raises(SettingsError, match=r"set agent\.host and agent\.port"):
        PageServer("127.0.0.1", server.port, {})


def test_a_text_that_is_too_old_vanishes_from_the_page() -> None:
    board = Board()
    board.put("host", "h 1\n", 120.0)
    board.put("disk", "d 1\n", 135.0)
    assert board.page(120.0) == "h 1\nd 1\n"
    assert board.page(120.5) == "d 1\n"
    board.put("host", "h 2\n", 141.0)
    assert board.page(121.0) == "h 2\nd 1\n"
