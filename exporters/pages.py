"""The agent's web pages: /metrics from text made beforehand, /healthz."""

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from exporters.compat.registry import ForeignText
from exporters.encode import Accepted
from pipeline.clock import monotonic
from pipeline.errors import SettingsError

MAX_CONNECTIONS: Final = 16  # at once, a thread each; more are closed unanswered
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)

Page = Callable[[], tuple[int, str]]


class Board:
    """Texts by collector, each shown until it is too old, and after them what `foreign` makes of their readings. Thread-safe."""

    def __init__(self, foreign: Sequence[ForeignText] = ()) -> None:
        self._texts: dict[str, tuple[float, str, Sequence[Accepted]]] = {}
        self._foreign = foreign

    def put(self, name: str, text: str, until: float, readings: Sequence[Accepted] = ()) -> None:
        """Replaces the text of `name`, made of `readings`; it is shown up to `until` (monotonic seconds)."""
        self._texts[name] = (until, text, readings)

    def page(self, clock: float) -> str:
        """All texts that are young enough at `clock`."""
        shown = [(text, readings) for until, text, readings in list(self._texts.values()) if clock <= until]
        ours = "".join(text for text, _ in shown)
        if not self._foreign:
            return ours
        every = [reading for _, readings in shown for reading in readings]
        return ours + "".join(text(every) for text in self._foreign)


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0  # seconds; a client that says nothing is let go
    server: "_Server"

    def do_GET(self) -> None:
        """Answers with the page of the path."""
        page = self.server.pages.get(self.path.partition("?")[0])
        status, text = page() if page else (404, "this agent has /metrics and /healthz\n")
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not worth a line each."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], pages: dict[str, Page]) -> None:
        self.pages = pages
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a scrape broke off", exc_info=True)


class PageServer:
    """Serves `pages`, which may change, by path in background threads until closed. Raises SettingsError where it cannot listen."""

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        try:
            self._server = _Server((host, port), pages)
        except OSError as e:
            raise SettingsError(f"cannot listen on {host}:{port}: {e.strerror}; set agent.host and agent.port to a free address") from e
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="pages", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(1.0)


def metrics_page(board: Board) -> Page:
    """The page that Prometheus scrapes."""
    return lambda: (200, board.page(monotonic()))
