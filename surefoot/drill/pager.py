"""A local stand-in for PagerDuty's Events v2 endpoint: takes events as it would and keeps them with their times."""

import json
import threading
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipeline.clock import utcnow

ROUTING_KEY = "d" * 32


@dataclass(frozen=True, slots=True)
class Received:
    """An event as it came in."""

    at: datetime
    action: str  # trigger, acknowledge, resolve
    dedup_key: str
    body: dict[str, Any]


class Pager:
    """Listens on a free loopback port from creation to `close`."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received.append(Received(utcnow(), body["event_action"], body["dedup_key"], body))
                answer = json.dumps({"status": "success", "message": "Event processed", "dedup_key": body["dedup_key"]}).encode()
                self.send_response(202)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass  # the drill prints its own timeline

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where to post events."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v2/enqueue"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
