"""Text that comes from outside (mount points, device names), made safe for every place it is shown or sent."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pipeline.records import Event

MAX_LENGTH: Final = 1024
_UNSAFE_NAME: Final = re.compile("[^a-zA-Z0-9_]")
# Control characters (C0, C1), the line and paragraph separators, surrogates (bytes that were no UTF-8) and non-characters.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """`text` with what could break a line protocol written as a visible escape, at most MAX_LENGTH characters.

    Two different texts of usual length stay different; a clean text stays as it is.
    """
    return _UNSAFE.sub(_escape, text)[:MAX_LENGTH]


def told(error: BaseException) -> str:
    """An error in a line for a person: what the system says of which file, or a reader's own sentence; of a defect also its kind."""
    if not isinstance(error, OSError):
        return clean(f"{type(error).__name__}: {error}")
    said = error.strerror or str(error) or type(error).__name__
    return clean(f"{error.filename}: {said}" if error.filename and error.strerror else said)


@lru_cache(maxsize=1024)
def label_name(text: str) -> str:
    """`text` as the name of a label: letters, digits and underscores, no digit and not two underscores first."""
    safe = _UNSAFE_NAME.sub("_", text)[:MAX_LENGTH]
    own = safe.lstrip("_")
    return own if own == safe and own and not own[0].isdigit() else f"_{own}"


def readable(text: str) -> str:
    """As `clean`, for text that a person reads: line ends and tabs stay, and so does its length."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in "\n\t" else _escape(match), text)


def clean_event(event: Event) -> Event:
    """`event` with its names and texts made safe; its id, which follows from what it tells of, stays."""
    return replace(
        event,
        node=clean(event.node),
        device=clean(event.device),
        run=clean(event.run),
        attempt=clean(event.attempt),
        code=clean(event.code),
        message=readable(event.message),
        attrs={clean(name): readable(value) for name, value in event.attrs.items()},
    )


def encodable(text: str) -> str:
    """`text` with lone surrogates written as escapes, so that it can be UTF-8; nothing else is changed."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
