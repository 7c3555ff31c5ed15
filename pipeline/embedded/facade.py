"""ClickHouse's HTTP interface over an Engine: one request in, one answer out. Knows nothing of processes and signals."""

import hmac
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import IO

from pipeline.embedded import protocol
from pipeline.embedded.engine import RESULT_BYTES, Engine
from pipeline.embedded.protocol import Kind
from pipeline.sizes import bound

STATEMENT_BYTES = 4 << 20
BODY_BYTES = 512 << 20
HEAD_BYTES = 64 << 10  # of a body, in which the statement of an INSERT must end
WHOLE_BYTES = 1 << 20  # an answer up to this size is complete before its headers go out

_TOKEN_QUERY = "SELECT engine_full FROM system.tables WHERE database = {d:String} AND name = {t:String}"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants. Header names are lower-case; `body` is decoded already."""

    method: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: `pieces` are the whole body where `complete`, else the stream may still raise StoreError."""

    pieces: Iterator[bytes]
    complete: bool = True
    format: str = ""
    query_id: str = ""


class Facade:
    """Answers requests from `engine`; inserts pass through files in `scratch`; `password` is user default's."""

    def __init__(self, engine: Engine, scratch: Path, password: str) -> None:
        self._engine = engine
        self._scratch = scratch
        self._password = password
        self._deduplicating: dict[tuple[str, str], bool] = {}

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Raises StoreError (516) unless `headers` carry user default and the password."""
        user, password = _credentials(headers)
        if user != "default" or not hmac.compare_digest(password.encode(), self._password.encode()):
            raise protocol.failure(
                protocol.AUTHENTICATION_FAILED,
                f"{user}: Authentication failed: password is incorrect, or there is no user with such name",
                "AUTHENTICATION_FAILED",
            )

    @contextmanager
    def answer(self, request: Request) -> Iterator[Answer]:
        """The answer to `request`; leaving the context stops the query if it still runs.

        Raises StoreError for what fails before the first byte, InputError for a body that cannot be read.
        """
        settings = protocol.engine_settings(request.parameters)
        statement, data = _split(request)
        kind = protocol.kind_of(statement)
        _refuse(request.method, kind)
        query_id = request.parameters.get("query_id") or token_hex(16)
        database = request.parameters.get("database") or request.headers.get("x-clickhouse-database") or "default"
        bound = {k.removeprefix("param_"): v for k, v in request.parameters.items() if k.startswith("param_")}
        if kind is Kind.INSERT:
            self._insert(statement, data, database, settings, bound)
            yield Answer(iter(()), query_id=query_id)
            return
        wanted = protocol.format_of(statement, request.parameters.get("default_format") or "TabSeparated")
        streams = kind is Kind.SELECT and wanted in protocol.STREAMED_FORMATS
        if kind is Kind.SELECT and not streams:
            settings.setdefault("max_result_bytes", str(RESULT_BYTES))
        with self._engine.connection(database, settings) as connection:
            if streams:
                with closing(connection.stream(statement, wanted, bound)) as stream:
                    held, complete = _first(stream)
                    yield Answer(chain(held, stream), complete, wanted, query_id)
                return
            try:
                whole = connection.query(statement, wanted, bound)
            finally:
                if kind is Kind.CHANGE:
                    self._deduplicating = {}  # what was known of the tables may be wrong now
        yield Answer(iter((whole,)), True, wanted if kind is not Kind.CHANGE else "", query_id)

    # --- inserts -----------------------------------------------------------------------------

    def _insert(self, statement: str, data: Iterator[bytes], database: str, settings: dict[str, str], bound: Mapping[str, str]) -> None:
        parsed = protocol.parse_insert(statement)
        token = settings.pop("insert_deduplication_token", "") or (parsed.token if parsed else "")
        if not token and not protocol.has_inline_token(statement):
            self._refuse_if_deduplicating(protocol.insert_target(statement), database)
        if parsed is None:
            with self._engine.connection(database, {**settings, "insert_deduplication_token": token} if token else settings) as connection:
                connection.query(_text(statement.encode("utf-8", "surrogateescape"), data), "Null", bound)
            return
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".insert") as file:
            if _spool(chain((statement[parsed.offset :].encode("utf-8", "surrogateescape"),), data), file):
                with self._engine.connection(database, settings) as connection:
                    connection.query(_infile(parsed, file.name, token), "Null", {})

    def _refuse_if_deduplicating(self, target: str, database: str) -> None:
        """Without a token chDB takes equal rows for a retry: one of two exporters' rows would be lost."""
        names = target.replace("`", "").split(".")
        key = (names[0] if len(names) == 2 else database, names[-1])
        cache = self._deduplicating  # a change meanwhile puts a new one in its place, and what we note goes with the old
        known = cache.get(key)
        if known is None:
            with self._engine.connection("default", {}) as connection:
                full = connection.query(_TOKEN_QUERY, "TabSeparated", {"d": key[0], "t": key[1]}).decode()
            known = "deduplication_window = " in full and "deduplication_window = 0" not in full
            if full:
                cache[key] = known
        if known:
            raise protocol.failure(
                protocol.NO_TOKEN, f"{'.'.join(key)} deduplicates: an INSERT needs insert_deduplication_token", "BAD_ARGUMENTS"
            )


def _refuse(method: str, kind: Kind) -> None:
    if kind is Kind.SESSION:
        told = "SET and USE need a session, and there is none here; use URL parameters"
        raise protocol.failure(protocol.NOT_IMPLEMENTED, told, "NOT_IMPLEMENTED")
    if method == "GET" and kind not in (Kind.SELECT, Kind.READ):
        raise protocol.failure(protocol.READONLY, "Cannot execute a query that changes something by GET; use POST", "READONLY")


def _first(stream: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """The first WHOLE_BYTES of `stream`, and whether that is all of it."""
    held: list[bytes] = []
    size = 0
    for piece in stream:
        held.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES:
            return held, False
    return held, True


def _credentials(headers: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return headers.get("x-clickhouse-user") or "default", headers.get("x-clickhouse-key", "")
    try:
        user, _, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return user, password


def _split(request: Request) -> tuple[str, Iterator[bytes]]:
    """The statement, and what follows it in the body. Data of an INSERT stay undecoded beyond its head."""
    query = request.parameters.get("query", "")
    if query and protocol.kind_of(query) is Kind.INSERT:
        return query + "\n", request.body
    head = query.encode() + (b"\n" if query else b"")
    body = iter(request.body)
    for piece in body:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    if protocol.kind_of(head[:HEAD_BYTES].decode("utf-8", "surrogateescape")) is Kind.INSERT:
        return head.decode("utf-8", "surrogateescape"), body
    return _text(head, body), iter(())


def _text(head: bytes, rest: Iterator[bytes]) -> str:
    """A statement that has no data after it, whole.

    Raises StoreError for one that is empty, too long or not UTF-8.
    """
    whole = bytearray(head)
    for piece in rest:
        whole += piece
        if len(whole) > STATEMENT_BYTES:
            raise protocol.failure(protocol.QUERY_IS_TOO_LARGE, f"The statement is over {bound(STATEMENT_BYTES)}", "QUERY_IS_TOO_LARGE")
    if not whole.strip():
        raise protocol.failure(protocol.SYNTAX_ERROR, "Empty query", "SYNTAX_ERROR")
    try:
        return whole.decode()
    except UnicodeDecodeError as e:
        raise protocol.failure(protocol.SYNTAX_ERROR, f"The statement is not UTF-8: {e}", "SYNTAX_ERROR") from e


def _spool(pieces: Iterator[bytes], file: IO[bytes]) -> int:
    size = 0
    for piece in pieces:
        try:
            size += file.write(piece)
            file.flush()
        except OSError as e:
            raise protocol.failure(protocol.NO_SPACE, f"Cannot keep the insert on disk: {e.strerror}", "NOT_ENOUGH_SPACE") from e
    return size


def _infile(insert: protocol.Insert, path: str, token: str) -> str:
    settings = ("SETTINGS insert_deduplication_token =", protocol.quoted(token)) if token else ()
    return " ".join(("INSERT INTO", insert.table, insert.columns, "FROM INFILE", protocol.quoted(path), *settings, "FORMAT", insert.format))
