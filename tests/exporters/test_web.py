"""Why a call was not answered, in words for a person, from real calls that fail."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from exporters.sources.web import token, why

Answering = Callable[[bytes], int]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """A port at which whoever asks is given these bytes, and the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(answer: bytes) -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1 << 16)
                        connection.sendall(answer)

        def begin(answer: bytes) -> int:
            threading.Thread(target=serve, args=(answer,), daemon=True).start()
            return int(server.getsockname()[1])

        yield begin
        server.shutdown(socket.SHUT_RDWR)


def asked(url: str, timeout: float = 5.0) -> str:
    with pytest.raises((requests.RequestException, OSError)) as caught, requests.Session() as session:
        session.trust_env = False
        _ = session.get(url, timeout=timeout).content
    return why(caught.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "the connection broke off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "the connection broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "the answer is not HTTP"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
            "the answer is packed in a way that cannot be undone",
        ),
    ],
)
def test_an_answer_that_is_none_is_named_for_what_it_is(answering: Answering, answer: bytes, words: str) -> None:
    assert asked(f"http://127.0.0.1:{answering(answer)}/metrics") == words


def test_nobody_there_silence_and_no_tls_are_told_apart(answering: Answering) -> None:
    assert asked("http://127.0.0.1:1/") == "Connection refused"
    assert asked(f"https://127.0.0.1:{answering(b'HTTP/1.1 400 Bad Request')}/").startswith("no TLS with it: wrong version number")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asked(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.2) == "no answer in time"


def test_a_name_that_nobody_has_is_told_in_the_resolvers_words() -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    error = requests.ConnectionError("HTTPSConnectionPool(host='x', port=443): Max retries exceeded")
    error.__cause__ = unknown
    assert why(error) == "Name or service not known"


def test_what_is_not_known_is_told_by_its_kind_and_a_circle_of_causes_ends() -> None:
    error = RuntimeError("x")
    error.__context__ = ValueError("y")
    error.__context__.__context__ = error
    assert why(error) == "RuntimeError"


def test_a_token_is_what_stands_in_its_file_and_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" secret\n")
    assert (token(str(tmp_path / "token")), token("")) == ("secret", "")
    with pytest.raises(OSError, match=f"the token cannot be read from {tmp_path}/gone: No such file or directory"):
        token(str(tmp_path / "gone"))
    with pytest.raises(OSError, match=f"the token cannot be read from {tmp_path}: it is no file"):
        token(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no file"):
        token(str(tmp_path / "pipe"))
