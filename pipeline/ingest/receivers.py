"""`surefoot ingest`: receives telemetry, keeps it in the spool, stores it. Here the parts are put together and run."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
import uvicorn

from pipeline.clock import utcnow
from pipeline.errors import SurefootError
from pipeline.ingest.batches import Kept
from pipeline.ingest.control import Board
from pipeline.ingest.endpoints import Endpoints
from pipeline.ingest.health import Health
from pipeline.ingest.intake import Intake, batch_of, read_back
from pipeline.ingest.link import Link
from pipeline.ingest.pacing import Pace
from pipeline.ingest.quarantine import Quarantine
from pipeline.ingest.seen import Seen
from pipeline.ingest.spool import Spool
from pipeline.ingest.writer import Writer
from pipeline.listening import cannot_listen, listen
from pipeline.queries.control import Issued
from pipeline.records import Beat
from pipeline.secrets import own_ingest_token
from pipeline.settings import Settings
from pipeline.store import Store

BEAT: Final = 2.0  # seconds between ingest's own signs of life
STOP: Final = 4.0  # seconds in which the spool is emptied when the process ends
HANG_UP: Final = 2  # seconds in which requests may finish
_log = structlog.get_logger(__name__)


class Ingest:
    """All parts of ingest but the server. Raises SurefootError where another process uses its spool."""

    def __init__(self, settings: Settings) -> None:
        folder = settings.state_dir / "spool"
        self._spool: Spool[Kept] = Spool(folder, settings.ingest.spool_bytes)
        seen = Seen(folder / "seen.log")
        for segment in self._spool.closed:
            seen.load(batch_of(payload) for chunk in self._spool.read(segment) for payload in chunk)
        health = Health(lambda: self._spool.size, self._spool.oldest)
        link: Link[Store] = Link(lambda: Store.connect(settings))
        pace = Pace(settings.ingest.batch_seconds, settings.ingest.batch_rows)
        self._writer = Writer(self._spool, link.get, read_back, Quarantine(folder / "quarantine"), seen, health, pace)
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="control")
        self._node = settings.node

        board = Board(link.get)

        async def ask(runs: Iterable[str]) -> Mapping[str, Issued]:
            return await asyncio.get_running_loop().run_in_executor(self._asking, board.read, runs)

        intake = Intake(self._spool, seen, self._writer.wake, health)
        secret = settings.ingest.pagerduty_secret
        self.endpoints = Endpoints(intake, ask, health, own_ingest_token(settings), settings.ingest.max_body_bytes, pagerduty_secret=secret)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Stores what the spool holds while it is open; at the end what can be stored in STOP seconds."""
        self._writer.start()
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            self.endpoints.close()
            await asyncio.to_thread(self._writer.stop, STOP)
            self._spool.close()
            self._asking.shutdown(wait=False, cancel_futures=True)

    async def _beat(self) -> None:
        while True:
            await self.endpoints.beat([Beat(component="ingest", at=utcnow(), node=self._node)])
            await asyncio.sleep(BEAT)


class _Server(uvicorn.Server):
    """Lets launchers that wait go before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, ingest: Ingest) -> None:
        super().__init__(config)
        self._ingest = ingest

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ingest.endpoints.control.close()
        await super().shutdown(sockets)


def serve(settings: Settings) -> None:
    """Receives telemetry until SIGTERM or SIGINT; then stores what it can and leaves the rest in the spool.

    For the main thread of a process. Raises SurefootError where the port or the spool is taken.
    """
    listener = _listen(settings.ingest.host, settings.ingest.port)
    ingest = Ingest(settings)
    config = uvicorn.Config(
        ingest.endpoints.app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=HANG_UP,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the server catches the signal, and raises it once more when it has ended

    async def run() -> None:
        async with ingest.running():
            _log.info("ingest serves", host=settings.ingest.host, port=listener.getsockname()[1])
            await _Server(config, ingest).serve([listener])
        _log.info("ingest stopped")

    asyncio.run(run())


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as e:
        raise SurefootError(cannot_listen("ingest", host, port, e)) from e
