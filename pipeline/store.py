"""The way to the rows: clickhouse-connect over HTTP, to the embedded store, a server or a cluster alike.

Every insert carries a deduplication token, so that a retry is stored once. Times are aware UTC both ways.
The driver's errors become those of pipeline/errors.py here and nowhere else.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeVar
from urllib.parse import unquote, urlsplit

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver import httputil
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError, StreamFailureError

from pipeline.columns import Column, column, table
from pipeline.errors import InputError, QueryTimeout, StoreError, StoreUnavailable, StreamFailure
from pipeline.records import Record
from pipeline.secrets import store_password
from pipeline.settings import Settings, StoreSettings

R = TypeVar("R", bound=Record)

CONNECTIONS: Final = 16
PATIENCE: Final = 10.0  # beyond a query's own limit, before the store counts as gone; seconds
TIMEOUTS: Final = frozenset({159, 160})
BUSY: Final = frozenset({201, 202, 203, 209, 210, 225, 242, 243, 252, 279, 285, 286, 319, 425, 439, 498, 745, 999})
DENIED: Final = frozenset({192, 193, 194, 516})

_CODE = re.compile(r"\bCode: (\d+)\.")
_WRAPPING = re.compile(r"^.*?(?=Code: \d+\.)|\s*\(for url [^)]*\)\s*$", re.DOTALL)  # the driver's words around the server's
_NAME = re.compile(r"\w+")
_HOLE = re.compile(r"\{\s*(\w+)\s*:")


_START: Final = "begin with `surefoot up`, or name a server's store in SUREFOOT_CLICKHOUSE_URL"


class Store:
    """A connection to the store, for any number of threads. Made by `Store.connect`."""

    def __init__(self, client: Any, pool: Any, where: StoreSettings) -> None:
        self._client = client
        self._pool = pool
        self._seconds = where.query_seconds
        # a Distributed table must have the rows on their shard before it acknowledges
        self._insert_settings = {"distributed_foreground_insert": "1"} if where.cluster else {}
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, settings: Settings, *, database: str | None = None) -> Self:
        """The store of `settings`, in `database` (default: `store.database`). Does not retry.

        Raises StoreUnavailable, which says what to do, where nothing answers, and StoreError for a wrong password or a database that is not
        there.
        """
        where = address(settings)
        pool = httputil.get_pool_manager(maxsize=CONNECTIONS)
        with _reached(settings), _errors():
            client = clickhouse_connect.get_client(
                **where,
                database=settings.store.database if database is None else database,
                pool_mgr=pool,
                connect_timeout=5,
                send_receive_timeout=settings.store.query_seconds + PATIENCE,
                autogenerate_session_id=False,
                tz_mode="aware",
                settings={"session_timezone": "UTC"},
            )
        return cls(client, pool, settings.store)

    def insert(self, records: Sequence[Record], *, token: str) -> None:
        """Store `records`, all of one class, in its table; nothing for none.

        The same token a second time stores nothing. Raises ValueError for an empty token or mixed classes,
        InputError for a value that the table cannot hold, StoreError (`permanent` tells whether to retry).
        """
        if not records:
            return
        kind = type(records[0])
        if any(type(r) is not kind for r in records):
            raise ValueError(f"insert one kind of record at a time, not {kind.__name__} and others")
        names = [f.name for f in fields(kind)]
        self.insert_rows(kind.table, [{n: getattr(r, n) for n in names} for r in records], token=token)

    def insert_rows(self, table_name: str, rows: Sequence[Mapping[str, Any]], *, token: str) -> None:
        """Store `rows` in a table; a column missing in a row is NULL, or the default of its type. Raises as `insert` does."""
        if not token:
            raise ValueError(f"an insert into {table_name} needs a deduplication token")
        if not rows:
            return
        block = _arrow(table(table_name, self._schema(table_name, rows), rows))
        with _errors():
            self._client.raw_insert(
                table_name,
                block.names,
                block.data,
                settings={**self._insert_settings, "insert_deduplication_token": token},
                fmt="ArrowStream",
            )

    def prepare(self, kinds: Iterable[type[Record]]) -> None:
        """Ask for the columns of these records' tables now, so that the first insert into each need not. Raises StoreError."""
        for kind in kinds:
            self._schema(kind.table, [{f.name: None for f in fields(kind)}])

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None, *, seconds: float | None = None) -> list[dict[str, Any]]:
        """The rows of `sql`, whose `{name:Type}` are bound by the server. Times are aware UTC, NULL is None.

        Stopped after `seconds` (at most, and by default, `store.query_seconds`): QueryTimeout.
        Raises StreamFailure where the answer broke off: part of it is never returned as the whole.
        """
        with _errors():
            result = self._client.query(_bare(sql), parameters=_bound(sql, parameters), settings=self._limits(seconds))
            names = result.column_names
            return [dict(zip(names, row, strict=True)) for row in result.result_rows]

    def query_arrow(self, sql: str, parameters: Mapping[str, Any] | None = None, *, seconds: float | None = None) -> pa.Table:
        """As `query`, as an Arrow table; also of no rows it has its columns."""
        with _errors():
            return self._client.query_arrow(
                _bare(sql), parameters=_bound(sql, parameters), settings=self._limits(seconds), use_strings=True
            )

    def read(self, cls: type[R], sql: str, parameters: Mapping[str, Any] | None = None) -> list[R]:
        """The rows of `sql` as records of `cls`; it must select exactly that record's columns."""
        return [cls(**row) for row in self.query(sql, parameters)]

    def command(self, sql: str) -> None:
        """Carry out DDL."""
        with _errors():
            self._client.command(sql)
        with self._lock:
            self._columns.clear()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._pool.clear()

    def _limits(self, seconds: float | None) -> dict[str, float]:
        return {"max_execution_time": min(seconds, self._seconds) if seconds is not None else self._seconds}

    def _schema(self, name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
        """The columns of a table, asked again where `rows` have one that was not there last time."""
        with self._lock:
            known = self._columns.get(name, ())
        if not set().union(*rows) <= {c.name for c in known}:
            if not all(_NAME.fullmatch(part) for part in name.split(".")):
                raise InputError(f"{name!r} is not the name of a table")
            rows = self.query(" ".join(("DESCRIBE TABLE", name)))
            known = tuple(column(row["name"], row["type"]) for row in rows if row["default_type"] not in ("MATERIALIZED", "ALIAS"))
            with self._lock:
                self._columns[name] = known
        return known


class _Block:
    """An Arrow stream and its columns."""

    def __init__(self, names: list[str], data: bytes) -> None:
        self.names = names
        self.data = data


def _arrow(content: pa.Table) -> _Block:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, content.schema) as writer:
        writer.write_table(content)
    return _Block(content.schema.names, sink.getvalue().to_pybytes())


def address(settings: Settings) -> dict[str, Any]:
    """Where the store of `settings` is and how to log in, as the driver's arguments. Raises StoreUnavailable where no store was started."""
    try:
        password = store_password(settings)
    except FileNotFoundError as e:
        raise StoreUnavailable(f"no store was started in {settings.state_dir}: {_START}") from e
    if not settings.store_url:  # over loopback, compressing costs more than it saves
        return {"host": settings.store.host, "port": settings.store.port, "username": "default", "password": password, "compress": False}
    url = urlsplit(settings.store_url)
    return {
        "interface": url.scheme,
        "host": url.hostname or "",
        "port": url.port or (8443 if url.scheme == "https" else 8123),
        "username": unquote(url.username or "") or settings.store.user,
        "password": password or unquote(url.password or ""),
        "compress": True,
    }


def _bare(sql: str) -> str:
    """`sql` without the semicolon at its end, where the driver puts the format."""
    return sql.rstrip().removesuffix(";")


def _bound(sql: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters as the driver takes them.

    Raises ValueError for a naive datetime, and for one that `sql` has no {name:Type} for: the driver
    would then put it into the text itself.
    """
    holes = set(_HOLE.findall(sql))
    if unused := (parameters or {}).keys() - holes:
        raise ValueError(f"the SQL has no {{{min(unused)}:Type}} for the parameter {min(unused)!r}")
    return {name: _value(name, value) for name, value in (parameters or {}).items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"parameter {name} is a naive datetime: give it a time zone")
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, (list, tuple)):
        return [_value(name, v) for v in value]
    return value


@contextmanager
def _reached(settings: Settings) -> Iterator[None]:
    """Adds to a store's not answering where it was looked for, and what to do."""
    try:
        yield
    except StoreUnavailable as e:
        if e.code:  # it did answer
            raise
        server = urlsplit(settings.store_url).hostname or ""
        where, what = (server, "does that server run?") if server else (f"{settings.store.host}:{settings.store.port}", _START)
        raise StoreUnavailable(f"{e} ({where}): {what}") from e


@contextmanager
def _errors() -> Iterator[None]:
    """The driver's errors as ours."""
    try:
        yield
    except ClickHouseError as e:
        raise _mapped(e) from e


def _root(error: BaseException) -> str:
    """What lies at the bottom of a chain of errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(getattr(error, "reason", None) or error)


def _mapped(error: ClickHouseError) -> StoreError:
    message = _WRAPPING.sub("", str(error)).strip()
    found = _CODE.search(message)
    code = getattr(error, "code", None) or (int(found[1]) if found else 0)
    if code in TIMEOUTS:
        return QueryTimeout(message, code)
    if code in DENIED:
        return StoreError(f"the store refuses the user or password: {message}", code)
    if code in BUSY or (code == 241 and "(total)" in message):
        return StoreUnavailable(message, code)
    if isinstance(error, StreamFailureError) or "IncompleteRead" in message or "Failed to read response data" in message:
        return StreamFailure(message, code)
    if isinstance(error, OperationalError) and not code:
        return StoreUnavailable(f"the store does not answer: {_root(error)}")
    return StoreError(message, code)
