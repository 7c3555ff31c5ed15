"""One POST, with every way it can go wrong mapped to DeliveryError."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import requests

from pipeline.errors import DeliveryError

TIMEOUT = (3.0, 5.0)  # seconds to connect, and between bytes of the answer
ANSWER_BYTES = 300  # of an answer that are worth keeping
_TRY_LATER = frozenset({408, 425, 429})


def post(url: str, body: bytes, headers: Mapping[str, str], now: datetime) -> str:
    """POST `body`; gives status and the beginning of the answer.

    Raises DeliveryError: not permanent for a network error, 408, 425, 429 and 5xx (with the seconds
    of Retry-After, counted from `now`), permanent for any other status but 2xx. Redirects are not followed.
    """
    try:
        with requests.post(
            url, data=body, headers=dict(headers), auth=_as_given, timeout=TIMEOUT, allow_redirects=False, stream=True
        ) as response:
            beginning: bytes = next(response.iter_content(ANSWER_BYTES), b"")
            answer = f"{response.status_code} {_gist(beginning)}".strip()
            status, retry_after = response.status_code, response.headers.get("Retry-After")
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema) as e:
        raise DeliveryError(f"the address cannot be used: {type(e).__name__}", permanent=True) from e
    except (requests.RequestException, OSError) as e:
        raise DeliveryError(f"no answer: {_cause(e)}", permanent=False) from e
    if 200 <= status < 300:
        return answer
    later = status in _TRY_LATER or status >= 500
    raise DeliveryError(answer, permanent=not later, retry_after=_seconds(retry_after, now) if later else None)


def _as_given(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No log-in but that of the headers: without it requests takes one from ~/.netrc, and puts it in the token's place."""
    return request


def _gist(beginning: bytes) -> str:
    """What an answer says: the `message` of a JSON object, else its text."""
    text = beginning.decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except ValueError:
        return text
    return str(said["message"]) if isinstance(said, dict) and said.get("message") else text


def _cause(error: Exception) -> str:
    """What went wrong, without the address: that of a webhook is often a secret, and this text is kept and shown."""
    inner = getattr(error.args[0], "reason", None) if error.args else None
    return f"{type(error).__name__}" + (f": {str(inner).rpartition(': ')[2]}" if inner else "")


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    """Retry-After (seconds, or an HTTP date) as seconds from `now`; None where absent or not understood."""
    if not retry_after:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())
