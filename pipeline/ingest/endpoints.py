"""The HTTP face of ingest: OTLP in, the control contract, and what ingest says of itself.

A request is acknowledged once it is on disk. Source of the answers: opentelemetry-proto, docs/specification.md.
"""

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from google.rpc import code_pb2 as rpc  # type: ignore[import-untyped]
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline.catalog.runs import FINISHING, GONE
from pipeline.clock import Clock, monotonic, utcnow
from pipeline.errors import InputError, StoreError, SurefootError, TooLarge
from pipeline.ingest.arrivals import Arrival, Form, of_beats
from pipeline.ingest.bodies import Bodies, UnknownEncoding
from pipeline.ingest.control import Answer, Ask, Beats, Control, Question
from pipeline.ingest.health import Health
from pipeline.ingest.intake import Intake
from pipeline.ingest.pagerduty import PATH, Hook
from pipeline.ingest.places import Places, Taken
from pipeline.otlp import decode as otlp
from pipeline.otlp.decode import ContentType, Signal
from pipeline.otlp.decoded import Decoded
from pipeline.records import Beat

BATCH_HEADER: Final = "x-surefoot-batch"  # a sender's id of a request, the same on each try
RETRY_AFTER: Final = "1"  # seconds
WORKERS: Final = 32  # threads that decode, and wait for the disk together
_LOOKS: Final = 8  # turns of the event loop within which an end of a connection that has come already is seen; it takes four
Endpoint = Callable[[Request], Awaitable[Response]]
_BATCH: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


class Unauthorised(SurefootError):
    """The bearer token is missing or wrong."""


class UnknownType(InputError):
    """The body is in no encoding of OTLP."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an error is answered."""

    status: int
    code: int  # google.rpc


def refusal(error: SurefootError) -> Refusal:
    """The answer to an error: 4xx where the sender must not repeat, 503 where it may."""
    match error:
        case TooLarge():
            return Refusal(413, rpc.INVALID_ARGUMENT)
        case UnknownType() | UnknownEncoding():
            return Refusal(415, rpc.INVALID_ARGUMENT)
        case InputError():
            return Refusal(400, rpc.INVALID_ARGUMENT)
        case Taken():
            return Refusal(409, rpc.ALREADY_EXISTS if error.passing else rpc.FAILED_PRECONDITION)
        case Unauthorised():
            return Refusal(401, rpc.UNAUTHENTICATED)
        case _:
            return Refusal(503, rpc.UNAVAILABLE)


class Endpoints:
    """The routes. `ask` gives what is issued for some runs; `note_beats` and decoding run on threads of `pool`."""

    def __init__(
        self, intake: Intake, ask: Ask, health: Health, token: str, max_body: int, clock: Clock = utcnow, pagerduty_secret: str = ""
    ) -> None:
        self._intake = intake
        self._health = health
        self._token = token.encode()
        self._bodies = Bodies(max_body)
        self._clock = clock
        self._beats = Beats()
        self._places = Places(monotonic())
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="receiver")
        self.control = Control(ask)
        self.app = Starlette(
            routes=[
                *(Route(f"/v1/{signal}", self._signal(signal), methods=["POST"]) for signal in Signal),
                Route("/v1/control", self._ask_control, methods=["GET"]),
                Route(PATH, Hook(intake, health, pagerduty_secret, clock).answer, methods=["POST"]),
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
            ]
        )

    def close(self) -> None:
        """Ends the threads, after what they are doing."""
        self._pool.shutdown()

    async def beat(self, beats: Iterable[Beat]) -> None:
        """Notes signs of life; where the spool is full they are lost, as an old sign of life is worth nothing."""
        arrival = of_beats([*beats], self._clock())
        await asyncio.get_running_loop().run_in_executor(self._pool, self._intake.note, arrival)

    # --- telemetry ---------------------------------------------------------------------------

    def _signal(self, signal: Signal) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            content_type = ContentType.PROTOBUF
            try:
                self._authorise(request)
                content_type = _content_type(request.headers)
                decoded = await self._receive(request, signal, content_type)
            except SurefootError as e:
                return self._refused(signal, content_type, e)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            self._health.answered(signal, 200)
            return Response(otlp.answer(signal, content_type, decoded), media_type=content_type)

        return endpoint

    async def _receive(self, request: Request, signal: Signal, content_type: ContentType) -> Decoded:
        batch = request.headers.get(BATCH_HEADER, "")
        if batch and not _BATCH.fullmatch(batch):
            raise InputError(f"{BATCH_HEADER} must be 1 to 64 letters, digits, - or _")
        encoding = request.headers.get("content-encoding", "").strip().lower()
        async with self._bodies.read(request) as body:
            work = self._pool.submit(self._take, body, encoding, batch, signal, content_type)
            return await asyncio.wrap_future(work)

    def _take(self, body: bytes, encoding: str, batch: str, signal: Signal, content_type: ContentType) -> Decoded:
        """On a thread: decompressing, decoding and the disk take time."""
        whole = self._bodies.unpack(body, encoding)
        return self._intake.take(Arrival(Form.OTLP, self._clock(), whole, batch, signal, content_type))

    def _refused(self, signal: str, content_type: ContentType, error: SurefootError) -> Response:
        answer = refusal(error)
        self._health.answered(signal, answer.status)
        headers = {503: {"Retry-After": RETRY_AFTER}, 401: {"WWW-Authenticate": "Bearer"}}.get(answer.status)
        body = otlp.refusal(content_type, answer.code, str(error))
        return Response(body, answer.status, headers, media_type=content_type)

    def _authorise(self, request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(token.strip().encode(), self._token)
        if not right or scheme.lower() != "bearer":
            raise Unauthorised("the bearer token is missing or wrong; it is in ingest.token of the state folder, or set as ingest.token")

    # --- control and health ------------------------------------------------------------------

    async def _ask_control(self, request: Request) -> Response:
        try:
            self._authorise(request)
            question = Question.from_query(request.query_params)
            answer = await self._answer(request, question)
        except StoreError as e:
            self._health.store_up = False
            return self._refused("control", ContentType.JSON, e)
        except SurefootError as e:
            return self._refused("control", ContentType.JSON, e)
        if answer is None:
            return Response(status_code=499)  # nobody reads it
        self._health.answered("control", 200)
        return JSONResponse(answer.to_json())

    async def _answer(self, request: Request, question: Question) -> Answer | None:
        """The answer; None where the launcher hung up before it. Raises Taken where another one has its place."""
        hung_up = asyncio.ensure_future(_hung_up(request))
        try:
            await asyncio.sleep(self._places.unsure_for(question, monotonic()))
            for _ in range(_LOOKS):  # who gave up while this process stood still is no sign of life
                await asyncio.sleep(0)
            if hung_up.done() and question.state != GONE:  # a last word stays true
                return None
            return await self._held(question, hung_up)
        finally:
            hung_up.cancel()

    async def _held(self, question: Question, hung_up: asyncio.Future[None]) -> Answer | None:
        place = self._places.take(question, monotonic())
        await self._note(question)
        heard = asyncio.ensure_future(self.control.wait(question))
        try:
            await asyncio.wait((heard, hung_up), return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                answer = heard.result()
                return replace(answer, others=self._beats.others(question, monotonic())) if question.state == FINISHING else answer
        finally:
            heard.cancel()
        self._places.broke_off(place, monotonic())
        return None

    async def _note(self, question: Question) -> None:
        write, hurried = self._beats.due(question, monotonic())
        if write:
            arrival = of_beats([question.beat(self._clock())], self._clock(), hurried=hurried)
            await asyncio.get_running_loop().run_in_executor(self._pool, self._intake.note, arrival)

    async def _healthz(self, _: Request) -> Response:
        health = self._health
        return JSONResponse(
            {
                "status": health.status,
                "spool_bytes": health.spool_bytes(),
                "spool_age_seconds": health.oldest_age(),
                "last_insert": health.last_insert,
                "store_up": health.store_up,
            }
        )

    async def _metrics(self, _: Request) -> Response:
        return Response(self._health.page(), media_type=self._health.content_type)


async def _hung_up(request: Request) -> None:
    """Waits until the other side closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _content_type(headers: Mapping[str, str]) -> ContentType:
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        return ContentType(given)
    except ValueError:
        raise UnknownType(f"content type {given!r} is not one of {', '.join(ContentType)}") from None
