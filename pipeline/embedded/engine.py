"""The embedded database: one chDB engine, many connections, one a running query.

A connection keeps the settings of its last query and changes only what differs, since most queries want the same.
"""

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chdb

from pipeline.embedded import protocol
from pipeline.errors import DatabaseOwned, StoreError

CONCURRENT = 16  # queries at a time; more wait their turn
RESULT_BYTES = 256 << 20  # of an answer that cannot be streamed
CANNOT_OPEN_FILE = 76

Options = Mapping[str, str]


class Connection:
    """One chDB connection: one query at a time, from any thread."""

    def __init__(self, raw: Any, base: Options) -> None:
        self._raw = raw
        self._base = base
        self._database = ""
        self._applied: dict[str, str] = {}

    def prepare(self, database: str, settings: Options) -> None:
        """Make `database` the default and `settings` (over the base ones) the only ones in force.

        Raises StoreError for a database that is not there or a value that does not fit.
        """
        if database != self._database:
            self.query(f"USE `{database.replace('`', '')}`", "Null", {})
            self._database = database
        wanted = {**self._base, **settings}
        changed = [f"{k} = {protocol.quoted(v)}" for k, v in sorted(wanted.items(), key=_readonly_last) if self._applied.get(k) != v]
        reset = [f"{k} = DEFAULT" for k in self._applied if k not in wanted]
        if changed or reset:
            self._applied = {}  # unknown until the statement below has succeeded
            self.query("SET " + ", ".join(reset + changed), "Null", {})
            self._applied = wanted

    def query(self, sql: str, output: str, parameters: Options) -> bytes:
        """The whole answer of `sql` in format `output`."""
        try:
            return bytes(self._raw.query(sql, output, params=dict(parameters)).bytes() or b"")
        except RuntimeError as e:
            raise _mapped(e) from e

    def stream(self, sql: str, output: str, parameters: Options) -> Generator[bytes, None, None]:
        """The answer of `sql` block by block; a caller that stops early stops the query."""
        try:
            answer = self._raw.send_query(sql, output, params=dict(parameters))
        except RuntimeError as e:
            raise _mapped(e) from e
        try:
            for block in answer:
                yield block.bytes()
        except RuntimeError as e:
            raise _mapped(e) from e
        finally:
            answer.close()

    @property
    def reusable(self) -> bool:
        """Whether the next query may have it: its settings are known and can still be changed."""
        return bool(self._applied) and "readonly" not in self._applied

    def close(self) -> None:
        """Give the connection back to chDB."""
        self._raw.close()


class Engine:
    """The engine over `path`, capped at `memory_bytes` in all, half of it for one query.

    Raises DatabaseOwned where another process has the folder open.
    """

    def __init__(self, path: Path, *, memory_bytes: int, query_seconds: float) -> None:
        self._where = _connection_string(path, memory_bytes)
        self._base = _base_settings(memory_bytes, query_seconds)
        self._patience = query_seconds
        self._slots = threading.BoundedSemaphore(CONCURRENT)
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._keeper = self._open()  # chDB closes the engine with its last connection

    def _open(self) -> Connection:
        try:
            return Connection(chdb.connect(self._where), self._base)  # type: ignore[no-untyped-call]
        except RuntimeError as e:
            if "EmbeddedServer" in str(e):  # chDB says why on its standard error only: "Cannot lock file …/status"
                raise DatabaseOwned(f"cannot open the store, most likely another process has it open: {e}", CANNOT_OPEN_FILE) from e
            raise _mapped(e) from e

    @contextmanager
    def connection(self, database: str, settings: Options) -> Iterator[Connection]:
        """A connection for one query, prepared; waits its turn where too many run.

        Raises StoreError (202) when the turn does not come.
        """
        if not self._slots.acquire(timeout=self._patience):
            busy = f"Too many simultaneous queries, {CONCURRENT} run"
            raise protocol.failure(protocol.TOO_MANY_QUERIES, busy, "TOO_MANY_SIMULTANEOUS_QUERIES")
        connection = None
        try:
            connection = self._take()
            connection.prepare(database, settings)
            yield connection
        finally:
            if connection is not None:
                self._give_back(connection)
            self._slots.release()

    def _take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._open()

    def _give_back(self, connection: Connection) -> None:
        if connection.reusable:
            with self._lock:
                self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the engine. Call it when no query runs any more."""
        for connection in (*self._idle, self._keeper):
            connection.close()
        self._idle.clear()


def _connection_string(path: Path, memory_bytes: int) -> str:
    caches = {"mark_cache_size": 64 << 20, "index_mark_cache_size": 16 << 20, "uncompressed_cache_size": 0}
    options = {"max_server_memory_usage": memory_bytes, **caches}
    return f"{path}?" + "&".join(f"{k}={v}" for k, v in options.items())


def _base_settings(memory_bytes: int, query_seconds: float) -> dict[str, str]:
    """In force where a client asks for nothing else. Grouping and sorting spill to disk before they fail."""
    return {
        "session_timezone": "UTC",
        "max_execution_time": str(query_seconds),
        "max_memory_usage": str(memory_bytes // 2),
        "max_bytes_before_external_group_by": str(memory_bytes // 4),
        "max_bytes_before_external_sort": str(memory_bytes // 4),
    }


def _readonly_last(item: tuple[str, str]) -> tuple[bool, str]:
    return item[0] == "readonly", item[0]


def _mapped(error: RuntimeError) -> StoreError:
    message = protocol.error_text(str(error))
    return StoreError(message, protocol.error_code(message))
