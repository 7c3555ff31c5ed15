"""Why a call over HTTP was not answered, in a few words: the libraries wrap it three deep, and tell their own addresses with it."""

import errno
import http.client
import json
import os
import ssl
import stat
from collections.abc import Iterator
from typing import Final

import requests
import urllib3.exceptions

MOST_OF_TOKEN: Final = 1 << 16  # characters
_WORDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (requests.Timeout, "no answer in time"),
    (urllib3.exceptions.TimeoutError, "no answer in time"),
    (urllib3.exceptions.DecodeError, "the answer is packed in a way that cannot be undone"),
    (requests.exceptions.ContentDecodingError, "the answer is packed in a way that cannot be undone"),
    (http.client.BadStatusLine, "the answer is not HTTP"),
    (urllib3.exceptions.InvalidHeader, "the answer is not HTTP"),
    (urllib3.exceptions.ProtocolError, "the connection broke off"),
    (requests.exceptions.ChunkedEncodingError, "the connection broke off"),
    (requests.exceptions.ConnectionError, "the connection broke off"),
    (requests.exceptions.InvalidURL, "the address is none"),
    (requests.exceptions.InvalidHeader, "the token holds what no header may carry"),
    (UnicodeError, "it holds bytes that are no text"),
    (json.JSONDecodeError, "the answer is no JSON"),
)


def token(path: str) -> str:
    """The token in a file, read anew each time, as it may be replaced within the hour; "" where no file is named. Raises OSError that says
    whose file it is."""
    if not path:
        return ""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is no file")
        with open(path, encoding="utf-8", errors="replace") as opened:
            return opened.read(MOST_OF_TOKEN).strip()
    except OSError as e:
        raise OSError(f"the token cannot be read from {path}: {e.strerror}") from e


def why(error: BaseException) -> str:
    """What the system, or TLS, says at the bottom of it; else what is known of its kind."""
    causes = [*_causes(error)]
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"no TLS with it: {(cause.reason or 'it broke off').replace('_', ' ').lower()}"
        if isinstance(cause, http.client.RemoteDisconnected):
            return "the connection broke off"
        if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, requests.RequestException):
            return cause.strerror
    return next((words for kind, words in _WORDS for cause in causes if isinstance(cause, kind)), type(error).__name__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came of, each once."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
