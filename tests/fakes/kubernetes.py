"""An API server of Kubernetes as far as lists and watches go: what the tests put into it is what it tells."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Cluster:
    """An API server's state: the objects by path, what happened to them in order, and the requests that came."""

    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    log: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0  # versions before it are gone
    asked: deque[tuple[str, dict[str, str]]] = field(default_factory=deque)
    ends: threading.Condition = field(default_factory=threading.Condition)
    hang_up: int = 0  # watches opened before this many hang-ups end
    token: str = "secret"
    forbidden: set[str] = field(default_factory=set)  # paths that its account may not read

    def put(self, path: str, told: dict[str, Any], how: str = "") -> None:
        with self.ends:
            self.version += 1
            mine = self.objects.setdefault(path, {})
            uid = told["metadata"]["uid"]
            kind = how or ("MODIFIED" if uid in mine else "ADDED")
            told = {**told, "metadata": {**told["metadata"], "resourceVersion": str(self.version)}}
            mine.pop(uid) if kind == "DELETED" else mine.update({uid: told})
            self.log.append((self.version, path, {"type": kind, "object": told}))
            self.ends.notify_all()

    def end_watches(self) -> None:
        with self.ends:
            self.hang_up += 1
            self.ends.notify_all()

    def forget(self) -> None:
        """Compacts the log: who stood before now is told 410."""
        with self.ends:
            self.version += 1
            self.oldest = self.version
            self.hang_up += 1
            self.ends.notify_all()

    def watches(self, path: str) -> int:
        return sum(1 for asked, params in self.asked if asked == path and "watch" in params)

    def lists(self, path: str) -> int:
        return sum(1 for asked, params in self.asked if asked == path and "watch" not in params)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def do_GET(self) -> None:
        path, params = urlsplit(self.path).path, {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        self.cluster.asked.append((path, params))
        if self.headers.get("Authorization") != f"Bearer {self.cluster.token}":
            self.answer(401, {"kind": "Status", "code": 401})
        elif path in self.cluster.forbidden:
            self.answer(403, {"kind": "Status", "code": 403})
        elif "watch" in params:
            self.watch(path, int(params["resourceVersion"]))
        else:
            with self.cluster.ends:
                items = list(self.cluster.objects.get(path, {}).values())
                version = str(self.cluster.version)
            begin, size = int(params.get("continue", 0)), int(params["limit"])
            rest = {"continue": str(begin + size)} if begin + size < len(items) else {}
            self.answer(200, {"metadata": {"resourceVersion": version, **rest}, "items": items[begin : begin + size]})

    def answer(self, status: int, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def watch(self, path: str, version: int) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        cluster = self.cluster
        mine = cluster.hang_up
        while True:
            with cluster.ends:
                if version < cluster.oldest:
                    self.chunk({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}})
                    break
                found = [(at, told) for at, where, told in cluster.log if where == path and at > version]
                if not found and cluster.hang_up > mine:
                    break
                if not found:
                    cluster.ends.wait(1)
                    continue
            for at, told in found:
                self.chunk(told)
                version = at
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, told: dict[str, Any]) -> None:
        line = json.dumps(told).encode() + b"\n"
        for piece in (line[: len(line) // 2], line[len(line) // 2 :]):  # a change may come in pieces
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def served(cluster: Cluster) -> Iterator[str]:
    """The address of a server that tells of `cluster`."""
    server = _Server(("127.0.0.1", 0), type("Mine", (_Handler,), {"cluster": cluster}))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        cluster.end_watches()
        server.shutdown()
        server.server_close()
        thread.join()
