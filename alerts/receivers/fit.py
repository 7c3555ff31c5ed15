"""Cutting text and bodies to a receiver's limits: characters and bytes are counted apart."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

ELLIPSIS = "…"
DETAIL_CHARACTERS = 1024


def cut(text: str, characters: int) -> str:
    """At most `characters` characters of `text`; an ellipsis, counted, says that something was cut."""
    return text if len(text) <= characters else text[: characters - len(ELLIPSIS)] + ELLIPSIS


def short_key(key: str, limit: int) -> str:
    """`key`, or its hash where it is over `limit` bytes: cutting would give two long keys one name."""
    raw = key.encode("utf-8", "replace")
    return key if len(raw) <= limit else hashlib.sha256(raw).hexdigest()


def encode(body: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; what UTF-8 cannot hold (lone surrogates, from broken log lines) becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def details_that_fit(details: Mapping[str, str], room: int) -> dict[str, str]:
    """`details` in at most `room` bytes of JSON: whole, else each value cut, else as many of the first as fit, and a note that says so.

    Text is cut before it is encoded, so never within a character or an escape.
    """
    whole = dict(details)
    size = len(encode(whole))
    if size <= room:
        return whole
    shorter = {cut(k, DETAIL_CHARACTERS): cut(v, DETAIL_CHARACTERS) for k, v in whole.items()}
    if len(encode(shorter)) <= room:
        return shorter
    note = {"note": f"details left out: {size} bytes, and only {room} fit"}
    first: dict[str, str] = {}
    left = room - len(encode(note))
    for key, value in shorter.items():
        left -= len(encode({key: value}))  # its braces make up for the comma
        if left < 0:
            break
        first[key] = value
    return first | note
