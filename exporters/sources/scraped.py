"""The text of another program's page: over HTTP, or from a file as node_exporter's textfile collector takes it."""

import os
import stat
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import requests
from urllib3.exceptions import HTTPError

from exporters.sources.web import token, why
from pipeline.clock import monotonic
from pipeline.sizes import bound

_ACCEPT: Final = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1"
_PIECE: Final = 64 << 10


def fetch(url: str, token_file: str, timeout: float, most: int, clock: Callable[[], float] = monotonic) -> str:
    """The page at `url` (http, https, file). `token_file` holds a bearer token, "" for none; it is read anew each time.

    Raises OSError, with a line that says why, where it is longer than `most` bytes, takes longer than `timeout` seconds, or is none.
    Redirects, proxies and .netrc are not followed: the token goes to the named address alone.
    """
    if urlsplit(url).scheme == "file":
        return _from_file(unquote(urlsplit(url).path), most)
    headers = {"Accept": _ACCEPT}
    if secret := token(token_file):
        headers["Authorization"] = f"Bearer {secret}"
    until = clock() + timeout
    with requests.Session() as session:
        session.trust_env = False
        try:
            with session.get(url, headers=headers, timeout=timeout, allow_redirects=False, stream=True) as response:
                if response.status_code != 200:
                    raise OSError(f"answers with status {response.status_code}")
                return _body(response, most, until, clock)
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"does not answer: {why(e)}") from e


def _body(response: requests.Response, most: int, until: float, clock: Callable[[], float]) -> str:
    """The body as it comes in, so that neither one without end nor one that trickles is waited for."""
    pieces, size = [], 0
    while piece := response.raw.read1(_PIECE, decode_content=True):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise OSError(f"is longer than {bound(most)}")
        if clock() > until:
            raise OSError("did not end in time")
    return b"".join(pieces).decode("utf-8", "backslashreplace")


def _from_file(path: str, most: int) -> str:
    """A regular file's text; a pipe would never end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no regular file")
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(f"{path} is longer than {bound(most)}")
    return text.decode("utf-8", "backslashreplace")
