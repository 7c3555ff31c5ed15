"""ClickHouse's HTTP protocol as data and pure functions: which settings pass, what kind of statement it is, how an error is told.

`pipeline/embedded/process.py` is the process that speaks it, `pipeline/embedded/engine.py` what answers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pipeline.errors import StoreError

UNKNOWN_SETTING, SYNTAX_ERROR, BAD_ARGUMENTS, READONLY, AUTHENTICATION_FAILED = 115, 62, 36, 164, 516
NOT_IMPLEMENTED, QUERY_IS_TOO_LARGE, TIMEOUT_EXCEEDED, TOO_MANY_QUERIES, NO_TOKEN, NO_SPACE = 48, 493, 159, 202, 36, 243

ENGINE_SETTINGS = frozenset(
    {
        "cast_string_to_dynamic_use_inference",
        "date_time_input_format",
        "insert_deduplication_token",
        "join_use_nulls",
        "max_block_size",
        "max_execution_time",
        "max_memory_usage",
        "max_result_bytes",
        "max_result_rows",
        "max_threads",
        "output_format_arrow_string_as_string",
        "output_format_json_quote_64bit_integers",
        "readonly",
        "result_overflow_mode",
        "session_timezone",
    }
)
"""URL settings that go to the engine."""

TRANSPORT_SETTINGS = frozenset(
    {
        "buffer_size",
        "cancel_http_readonly_queries_on_client_close",
        "client_protocol_version",
        "compress",
        "database",
        "default_format",
        "enable_http_compression",
        "http_headers_progress_interval_ms",
        "query",
        "query_id",
        "send_progress_in_http_headers",
        "wait_end_of_query",
    }
)
"""URL parameters that concern the transport alone. `session_id` is not among them: a connection here keeps no state."""

STREAMED_FORMATS = frozenset({"Native", "TabSeparated", "TSV", "CSV", "RowBinary", "JSONEachRow"})
"""Formats without head or foot: blocks that are encoded apart can be joined."""

_BY_STATUS = {
    403: (192, 193, 516),
    404: (46, 47, 50, 60, 63, 81, 115),
    408: (159,),
    413: (493,),
    501: (48,),
    503: (202, 243),
    400: (6, 26, 27, 36, 38, 41, 43, 53, 62, 69, 70, 72, 117, 164, 349, 456, 457, 489),
}
_STATUS = {code: status for status, codes in _BY_STATUS.items() for code in codes}

_CODE = re.compile(r"\bCode: (\d+)\.")
_TRIVIA = r"(?:\s|--[^\n]*\n?|/\*.*?\*/)*"
_WORD = re.compile(_TRIVIA + r"\(*" + _TRIVIA + r"([A-Za-z]+)", re.DOTALL)
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*(?:\bSETTINGS\b[^;]*)?;?\s*\Z", re.IGNORECASE)
_NAME = r"(?:`[^`\\]+`|\w+)"
_INSERT = re.compile(rf"INSERT\s+INTO\s+(?:TABLE\s+)?(?!FUNCTION\b)({_NAME}(?:\.{_NAME})?)\s*", re.IGNORECASE)
_INSERT_DATA = re.compile(
    r"(?P<columns>\([^()]*\))?\s*(?:SETTINGS\s+insert_deduplication_token\s*=\s*'(?P<token>[^'\\]*)'\s*)?"
    r"FORMAT\s+(?P<format>\w+)\s*?(?:\n|\Z|(?=[ \t(]))",
    re.IGNORECASE,
)
_INLINE_TOKEN = re.compile(r"\bSETTINGS\b[^;]*\binsert_deduplication_token\s*=\s*'[^']+'", re.IGNORECASE)


class Kind(StrEnum):
    """What a statement does, as far as it matters here."""

    SELECT = "select"  # can be streamed
    READ = "read"  # reads, but only whole
    INSERT = "insert"
    CHANGE = "change"  # everything else: DDL, ALTER, KILL …
    SESSION = "session"  # would change the connection, which is shared


_KINDS = {
    **dict.fromkeys(("SELECT", "WITH"), Kind.SELECT),
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "CHECK"), Kind.READ),
    "INSERT": Kind.INSERT,
    **dict.fromkeys(("SET", "USE"), Kind.SESSION),
}


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO table (columns) FORMAT format` whose data begin at `offset` of the body."""

    table: str
    columns: str
    format: str
    token: str
    offset: int


def kind_of(statement: str) -> Kind:
    """The kind of `statement`, by its first word."""
    word = _WORD.match(statement)
    return _KINDS.get(word[1].upper(), Kind.CHANGE) if word else Kind.CHANGE


def format_of(statement: str, default: str) -> str:
    """The format that `statement` asks for at its end, else `default`."""
    found = _FORMAT.search(statement)
    return found[1] if found else default


def insert_target(statement: str) -> str:
    """The table that an INSERT names, or "" where that cannot be seen."""
    word = _WORD.match(statement)
    found = _INSERT.match(statement, word.start(1)) if word else None
    return found[1] if found else ""


def parse_insert(statement: str) -> Insert | None:
    """The parts of an INSERT whose data follow in the body; None for INSERT … SELECT and INSERT … VALUES."""
    word = _WORD.match(statement)
    head = _INSERT.match(statement, word.start(1)) if word else None
    rest = _INSERT_DATA.match(statement, head.end()) if head else None
    if head is None or rest is None:
        return None
    return Insert(head[1], rest["columns"] or "", rest["format"], rest["token"] or "", rest.end())


def has_inline_token(statement: str) -> bool:
    """Whether `statement` sets a deduplication token in its own SETTINGS."""
    return _INLINE_TOKEN.search(statement) is not None


def engine_settings(url: Mapping[str, str]) -> dict[str, str]:
    """The settings among the URL's parameters that go to the engine.

    Raises StoreError (115, UNKNOWN_SETTING) naming the first that is not allowed here.
    """
    chosen = {k: v for k, v in url.items() if not k.startswith("param_") and k not in TRANSPORT_SETTINGS}
    if unknown := chosen.keys() - ENGINE_SETTINGS:
        raise failure(UNKNOWN_SETTING, f"Setting {min(unknown)} is unknown, or not allowed on the embedded store", "UNKNOWN_SETTING")
    return chosen


def quoted(text: str) -> str:
    """`text` as a string literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def failure(code: int, message: str, name: str) -> StoreError:
    """An error told as ClickHouse would tell it."""
    return StoreError(f"Code: {code}. DB::Exception: {message}. ({name})", code)


def error_code(message: str) -> int:
    """ClickHouse's number in an error's text, 0 where there is none."""
    found = _CODE.search(message)
    return int(found[1]) if found else 0


def error_text(message: str) -> str:
    """An engine's error from its "Code:" on, without the wrapper's words before it."""
    found = _CODE.search(message)
    return message[found.start() :].strip() if found else message.strip()


def http_status(code: int) -> int:
    """The HTTP status that ClickHouse gives for an error code."""
    return _STATUS.get(code, 500)


def exception_block(message: str, tag: str) -> bytes:
    """What ends a stream that failed after its headers: the client finds it by `tag` and raises."""
    text = message.encode() + b"\n"
    return b"\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n" % (tag.encode(), text, len(text), tag.encode())
