"""Text that comes from outside (mount points, device names), made safe for every place it is shown or sent."""

import re
from typing import Final

MAX_LENGTH: Final = 1024
# Control characters (C0, C1), the line and paragraph separators, surrogates (bytes that were no UTF-8) and non-characters.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """`text` with what could break a line protocol written as a visible escape, at most MAX_LENGTH characters.

    Two different texts of usual length stay different; a clean text stays as it is.
    """
    return _UNSAFE.sub(_escape, text)[:MAX_LENGTH]


def encodable(text: str) -> str:
    """`text` with lone surrogates written as escapes, so that it can be UTF-8; nothing else is changed."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
