"""`surefoot store`: the one process that owns the embedded database and lets all others in by ClickHouse's HTTP protocol."""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import structlog

from pipeline.embedded.engine import Engine
from pipeline.embedded.facade import Facade
from pipeline.embedded.server import Server, in_thread
from pipeline.embedded.tokens import forget_cut_short
from pipeline.errors import DatabaseOwned, StoreUnavailable
from pipeline.listening import cannot_listen
from pipeline.migrate import migrate
from pipeline.ownership import AlreadyOwned, own
from pipeline.secrets import own_store_password
from pipeline.settings import Settings
from pipeline.store import Store

log = structlog.get_logger()

STOP_SECONDS = 10.0  # beyond the longest query


def serve(settings: Settings, ready: Callable[[], None] | None = None) -> None:
    """Own `state_dir/store` and answer on `store.host:port` until SIGTERM or SIGINT. For the main thread of a process.

    Tables are brought up to date before the first client is heard; then `ready` is called. On a signal no
    new request is taken, running ones finish, and the database is closed.
    Raises DatabaseOwned where another process owns the folder, StoreUnavailable where the address cannot be had.
    """
    with _own(settings.state_dir), _signals() as stopped:
        scratch = _fresh(settings.state_dir / "store.inserts")
        data = settings.state_dir / "store"
        data.mkdir(mode=0o700, exist_ok=True)
        if forgotten := forget_cut_short(data):
            log.info("inserts cut short by a kill may be sent again", inserts=forgotten)
        engine = Engine(data, memory_bytes=settings.store.memory_bytes, query_seconds=settings.store.query_seconds)
        try:
            facade = Facade(engine, scratch, own_store_password(settings))
            with closing(_listen(settings.store.host, settings.store.port, facade)) as server:
                _migrate(facade, settings)
                stop = in_thread(server, "store")
                log.info("store serves", host=settings.store.host, port=settings.store.port, pid=os.getpid())
                if ready is not None:
                    ready()
                stopped.recv(1)
                done = stop(settings.store.query_seconds + STOP_SECONDS)
                log.info("store stopped", requests_cut_off=not done)
        finally:
            engine.close()


def _own(state_dir: Path) -> IO[str]:
    """The lock on the database's folder, held until it is closed."""
    try:
        return own(state_dir / "store.lock")
    except AlreadyOwned as e:
        raise DatabaseOwned(f"{state_dir / 'store'} is owned by process {e.owner}: stop that one, or set another state_dir") from None


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket that becomes readable at SIGTERM or SIGINT.

    A wake-up descriptor, since the signal may reach one of the database's threads, and the main thread would sleep on.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    old = signal.set_wakeup_fd(writer.fileno())
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()


def _fresh(folder: Path) -> Path:
    """An empty folder, for what inserts leave while they run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def _listen(host: str, port: int, facade: Facade) -> Server:
    try:
        return Server((host, port), facade)
    except OSError as e:
        raise StoreUnavailable(cannot_listen("store", host, port, e)) from e


def _migrate(facade: Facade, settings: Settings) -> None:
    """Bring the tables up to date through a port that nobody else knows; on the real one, clients wait meanwhile."""
    private = Server(("127.0.0.1", 0), facade)
    stop = in_thread(private, "store-migrate")
    where = settings.store.model_copy(update={"host": "127.0.0.1", "port": private.server_port, "url": ""})
    try:
        store = Store.connect(settings.model_copy(update={"store": where, "clickhouse_url": ""}), database="default")
        try:
            for name in migrate(store, settings):
                log.info("migrated", name=name)
        finally:
            store.close()
    finally:
        stop(STOP_SECONDS)
