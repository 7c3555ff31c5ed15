"""Kubernetes' API server: a list, and from there on every change, by its own watch protocol ("Efficient detection of changes").

One thread for each resource. A watch that ends is resumed where it stood; one that is too old for the server (410 Gone) begins anew
with a list.
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import requests
from urllib3.exceptions import HTTPError

from exporters.sources.web import token, why
from pipeline.clock import monotonic
from pipeline.sizes import bound

PAGE: Final = 500  # objects to an answer
MOST: Final = 200_000  # objects of one resource that are taken in
MAX_LINE: Final = 8 << 20  # bytes of one change; etcd takes no object over 1.5 MiB
MAX_LIST: Final = 64 << 20  # bytes of one answer
KEPT: Final = 20_000  # changes that wait to be taken; beyond them the list is begun anew
WATCH: Final = 60.0  # seconds that the server is asked to keep a watch open, so that a dead connection is noticed
_SHORT: Final = 0.5  # seconds; a server that ends watches sooner is not asked in a circle
_BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_log = logging.getLogger(__name__)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an object: `LISTED` (it was in a list), `ADDED`, `MODIFIED`, `DELETED`; or `BEGUN`: a new list follows."""

    how: str
    object: Object


class Gone(Exception):
    """The server no longer knows where the watch stood."""


class Api:
    """The server at `url`. The token is read anew for each request, as it is replaced within the hour."""

    def __init__(self, url: str, token_file: str, ca_file: str, timeout: float) -> None:
        self._url, self._token_file, self._timeout = url.rstrip("/"), token_file, timeout
        self._verify: str | bool = ca_file or True

    def list(self, path: str) -> Iterator[Object]:
        """The answers that together are the list at `path`. Raises OSError, Gone where it has aged between two of them."""
        more = ""
        while True:
            answer = self._get(path, {"limit": str(PAGE), **({"continue": more} if more else {})})
            yield answer
            more = _meta(answer, "continue")
            if not more:
                return

    def watch(self, path: str, version: str) -> Iterator[Object]:
        """The changes at `path` since `version`, until the server ends the watch. Raises OSError, Gone."""
        params = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": f"{WATCH:.0f}"}
        try:
            with self._open(path, params, WATCH + self._timeout) as response:
                for line in _lines(response):
                    yield _parsed(line)
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"the API server at {self._url} does not answer: {why(e)}") from e

    def _get(self, path: str, params: Mapping[str, str]) -> Object:
        try:
            with self._open(path, params, self._timeout) as response:
                body = response.raw.read(MAX_LIST + 1, decode_content=True)
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"the API server at {self._url} does not answer: {why(e)}") from e
        if len(body) > MAX_LIST:
            raise OSError(f"the list at {path} is longer than {bound(MAX_LIST)}")
        return _parsed(body)

    @contextmanager
    def _open(self, path: str, params: Mapping[str, str], silence: float) -> Iterator[requests.Response]:
        """The answer; the connection ends with it. Raises Gone, OSError for any status but 200, and what requests raises."""
        headers = {"Accept": "application/json"}
        if secret := token(self._token_file):
            headers["Authorization"] = f"Bearer {secret}"
        how: dict[str, Any] = {"params": dict(params), "headers": headers, "timeout": (self._timeout, silence), "verify": self._verify}
        with requests.Session() as session:
            session.trust_env = False
            with session.get(self._url + path, allow_redirects=False, stream=True, **how) as response:
                if response.status_code == 410:
                    raise Gone
                if response.status_code != 200:
                    raise OSError(f"the server answers {path} with status {response.status_code}")
                yield response


def _lines(response: requests.Response) -> Iterator[bytes]:
    rest = b""
    while piece := response.raw.read1(1 << 16, decode_content=True):
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
        if len(rest) > MAX_LINE:
            raise OSError("the server's change is longer than any object")


def _parsed(text: bytes) -> Object:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise OSError("the server's answer is no JSON") from e
    if not isinstance(told, dict):
        raise OSError("the server's answer is no object")
    return told


def _meta(told: Object, key: str) -> str:
    """A word of an object's metadata, "" where there is none."""
    meta = told.get("metadata")
    word = meta.get(key) if isinstance(meta, dict) else None
    return word if isinstance(word, str) else ""


class Follower:
    """Follows one resource in a thread of its own; `take` gives what has changed. `reduce` makes objects small before they are kept.
    `heard` is set once the server has answered, well or not."""

    def __init__(self, api: Api, path: str, reduce: Callable[[Object], Object], clock: Callable[[], float] = monotonic) -> None:
        self.path, self._api, self._reduce, self._clock = path, api, reduce, clock
        self.error = "has not answered yet"  # "" where it is being followed
        self._changes: deque[Change] = deque()
        self._lock = threading.Lock()
        self._stop, self.heard = threading.Event(), threading.Event()
        self._overrun = False
        threading.Thread(target=self._follow, name=f"kube{path.replace('/', '-')}", daemon=True).start()

    def take(self) -> list[Change]:
        """The changes since the last call, in their order. What a list holds comes whole: BEGUN, then all of it."""
        with self._lock:
            taken, self._changes = list(self._changes), deque()
        return taken

    def close(self) -> None:
        """Ends it, at the latest when its watch does."""
        self._stop.set()

    def _follow(self) -> None:
        version, failures = "", 0
        while not self._stop.is_set():
            try:
                if not version or self._overrun:
                    version = self._list()
                self.error = ""
                self.heard.set()
                began = self._clock()
                version = self._watch(version)
                failures = 0
                if self._clock() - began < _SHORT:
                    self._stop.wait(_SHORT)
            except Gone:
                version = ""
                self._stop.wait(_BACKOFF[0])
            except OSError as e:
                if self.error != str(e):
                    _log.warning("kubernetes %s: %s", self.path, e)
                self.error = str(e)
                self.heard.set()
                self._stop.wait(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
                failures += 1

    def _list(self) -> str:
        """Takes the list in; its version. It is handed over only when it is whole."""
        found, version = [Change("BEGUN", {})], ""
        for answer in self._api.list(self.path):
            version = _meta(answer, "resourceVersion")
            items = answer.get("items")
            found += [Change("LISTED", self._reduce(one)) for one in (items if isinstance(items, list) else ()) if isinstance(one, dict)]
            if len(found) > MOST:
                raise OSError(f"there are more than {MOST} objects")
        with self._lock:
            self._changes, self._overrun = deque(found), False  # what a list says is newer than all that waits
        return version

    def _watch(self, version: str) -> str:
        """Takes changes in until the watch ends; where it stood then."""
        for told in self._api.watch(self.path, version):
            how, object_ = str(told.get("type")), told.get("object")
            if not isinstance(object_, dict):
                continue
            if how == "ERROR":
                if object_.get("code") == 410:
                    raise Gone
                raise OSError(f"the watch ended with an error: {str(object_.get('message'))[:200]}")
            version = _meta(object_, "resourceVersion") or version
            if how in ("ADDED", "MODIFIED", "DELETED"):
                self._put(Change(how, self._reduce(object_)))
            if self._overrun or self._stop.is_set():
                break
        return version

    def _put(self, change: Change) -> None:
        with self._lock:
            if len(self._changes) < MOST + KEPT:
                self._changes.append(change)
            else:
                self._overrun = True
