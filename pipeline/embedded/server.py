"""The HTTP side of the embedded store: threads, keep-alive, framing, compression and errors. Only loopback should reach it."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import structlog

from pipeline.embedded import coding, forms, protocol
from pipeline.embedded.facade import BODY_BYTES, Answer, Facade, Request
from pipeline.errors import InputError, StoreError, TooLarge

log = structlog.get_logger()

IDLE_SECONDS = 300.0  # between requests, and the longest pause within one
CONNECTIONS = 256
STOP_POLL = 0.1  # how often the listener looks whether it should stop, seconds
HEADERS = {"X-ClickHouse-Timezone": "UTC", "Content-Type": "text/plain; charset=UTF-8"}


class Server(ThreadingHTTPServer):
    """One thread a connection. `stop` lets running requests finish."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], facade: Facade) -> None:
        super().__init__(address, Handler)
        self.facade = facade
        self.stopping = False
        self._idle: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        self._change = threading.Condition()

    def stop(self, seconds: float) -> bool:
        """Accept nothing more, close idle connections, wait up to `seconds` for busy ones. Whether all are done."""
        self.shutdown()
        self.server_close()
        with self._change:
            self.stopping = True
            for connection in self._idle:
                _hang_up(connection)
            return self._change.wait_for(lambda: not self._open, seconds)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more connection."""
        return len(self._open) < CONNECTIONS

    def opened(self, connection: socket.socket) -> None:
        """Count a connection in."""
        with self._change:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """Count a connection out."""
        with self._change:
            self._open.discard(connection)
            self._idle.discard(connection)
            self._change.notify_all()

    def waits(self, connection: socket.socket) -> None:
        """The connection waits for its next request."""
        with self._change:
            self._idle.add(connection)
            if self.stopping:
                _hang_up(connection)

    def works(self, connection: socket.socket) -> None:
        """The connection has a request to answer."""
        with self._change:
            self._idle.discard(connection)

    def server_close(self) -> None:
        """Close the listening socket only; `stop` waits for the rest."""
        self.socket.close()

    close = server_close

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else is logged with its trace."""
        if not isinstance(sys.exception(), OSError):
            log.exception("request failed in the store", client=client_address)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # it is gone already


class Handler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.1 for one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    wbufsize = 64 << 10
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Begin the connection."""
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        """End the connection."""
        try:
            super().finish()
        except OSError:
            pass  # the client left before the last bytes
        finally:
            self.server.closed(self.connection)

    def handle_one_request(self) -> None:
        """One request, with its wait before it."""
        self.server.waits(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """A request has come."""
        self.server.works(self.connection)
        return super().parse_request()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""

    def do_GET(self) -> None:
        """Answer a GET."""
        self._respond()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._respond()

    def _respond(self) -> None:
        if self.server.stopping:
            self.close_connection = True
        where = urlsplit(self.path)
        body = self._body()
        try:
            if where.path == "/ping":
                self._send_whole(200, b"Ok.\n", {})
            elif where.path != "/":
                self._send_whole(404, b"There is nothing here but / and /ping\n", {})
            else:
                self._query(dict(parse_qsl(where.query, keep_blank_values=True)), body)
        except StoreError as e:
            self._refuse(protocol.http_status(e.code), str(e), e.code)
        except TooLarge as e:
            self._refuse(413, f"Code: 493. DB::Exception: {e}. (QUERY_IS_TOO_LARGE)", protocol.QUERY_IS_TOO_LARGE)
        except InputError as e:
            self._refuse(400, f"Code: 36. DB::Exception: {e}. (BAD_ARGUMENTS)", protocol.BAD_ARGUMENTS)
        self._drain(body)

    def _query(self, parameters: dict[str, str], body: Iterator[bytes]) -> None:
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.server.facade.authenticate(headers)
        pieces = coding.decoded(body, headers.get("content-encoding", "").lower(), BODY_BYTES)
        if forms.is_form(headers.get("content-type", "")):
            parameters, pieces = parameters | forms.fields(headers["content-type"], pieces), iter(())
        with self.server.facade.answer(Request(self.command, parameters, headers, pieces)) as answer:
            for _ in pieces:
                pass  # whatever the statement left unread
            wished = coding.accepted(headers.get("accept-encoding", "")) if parameters.get("enable_http_compression") == "1" else ""
            if answer.complete:
                self._send_complete(answer, wished)
            else:
                self._send_stream(answer, wished)

    # --- framing -----------------------------------------------------------------------------

    def _body(self) -> Iterator[bytes]:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return coding.raw_pieces(self.rfile, None)
        length = self.headers.get("Content-Length", "0")
        return coding.raw_pieces(self.rfile, int(length) if length.isdecimal() else 0)

    def _drain(self, body: Iterator[bytes]) -> None:
        """Read what is left of the body, so that the next request starts where it should; give up on a long one."""
        left = 0
        try:
            for piece in body:
                left += len(piece)
                if left > BODY_BYTES // 8:
                    self.close_connection = True
                    return
        except InputError:
            self.close_connection = True

    def _head(self, status: int, extra: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (HEADERS | extra).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _send_whole(self, status: int, content: bytes, extra: dict[str, str]) -> None:
        self._head(status, extra | {"Content-Length": str(len(content))})
        self.wfile.write(content)
        self.wfile.flush()

    def _refuse(self, status: int, message: str, code: int) -> None:
        extra = {"X-ClickHouse-Exception-Code": str(code)} | ({"Retry-After": "1"} if status == 503 else {})
        self._send_whole(status, message.encode() + b"\n", extra)

    def _send_complete(self, answer: Answer, wished: str) -> None:
        content = b"".join(answer.pieces)
        extra = _described(answer)
        if wished and len(content) >= coding.SMALLEST_COMPRESSED:
            encoder = coding.ENCODERS[wished]()
            content = encoder.begin() + encoder.encode(content) + encoder.end()
            extra["Content-Encoding"] = wished
        self._send_whole(200, content, extra)

    def _send_stream(self, answer: Answer, wished: str) -> None:
        """Chunks, ended properly only where the answer is whole: a client must not take part of it for all."""
        encoder = coding.ENCODERS[wished]() if wished else coding.Identity()
        tag = token_hex(8)
        extra = {"Transfer-Encoding": "chunked", "X-ClickHouse-Exception-Tag": tag} | ({"Content-Encoding": wished} if wished else {})
        self._head(200, _described(answer) | extra)
        self._chunk(encoder.begin())
        try:
            for piece in answer.pieces:
                self._chunk(encoder.encode(piece))
        except StoreError as e:
            self.close_connection = True
            self._chunk(encoder.encode(protocol.exception_block(str(e), tag)) + encoder.end())
            self.wfile.flush()
            return
        self._chunk(encoder.end())
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n" % len(data))
            self.wfile.write(data)
            self.wfile.write(b"\r\n")


def _described(answer: Answer) -> dict[str, str]:
    shown = {"X-ClickHouse-Query-Id": answer.query_id, "X-ClickHouse-Summary": "{}"}
    return shown | ({"X-ClickHouse-Format": answer.format} if answer.format else {})


def in_thread(server: Server, name: str) -> Callable[[float], bool]:
    """Serve in a thread of its own; the function returned stops it (see Server.stop)."""
    threading.Thread(target=server.serve_forever, args=(STOP_POLL,), name=name, daemon=True).start()
    return server.stop
