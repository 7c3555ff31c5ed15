"""Sends records, log lines and metrics to ingest, from one background thread, without ever hurting its caller.

What is given is encoded at once and waits in a bounded queue. Each request keeps its id over its retries
(`X-Surefoot-Batch`), so that one whose answer was lost is stored once.
"""

import gzip
import logging
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import requests
from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception
from tenacity.wait import wait_exponential_jitter
from urllib3.exceptions import HTTPError

from exporters.sending import wire as otlp_wire
from exporters.sending.backlog import Backlog, signal_of
from exporters.sending.buffer import DiskBuffer
from exporters.sending.leftovers import leave, left
from exporters.sending.offset import ClockOffset
from exporters.sending.outgoing import Item, Outgoing, Signal
from exporters.sending.verdict import explain, partial, retry_after
from exporters.sending.wire import LogLine
from exporters.sources.web import why
from pipeline.clock import monotonic, utcnow
from pipeline.errors import DeliveryError
from pipeline.records import Record
from pipeline.sizes import bound

MAX_REQUEST: Final = 4 << 20  # bytes before compression: what gRPC peers and collectors take by default
_ROOM: Final = MAX_REQUEST - (64 << 10)  # leaves the framing of each part and the resource their place
_COMPRESS_FROM: Final = 4 << 10
_COLLECT_SECONDS: Final = 5.0
_ANSWER_LIMIT: Final = 64 << 10
_BACKOFF: Final = wait_exponential_jitter(multiplier=0.2, max=5.0, jitter=0.2)
_LASTING: Final = frozenset({"surefoot.event", "surefoot.transition", "surefoot.facts", "surefoot.change"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SenderStats:
    """Counts since the start; by kind (an event name, "log", "metrics") where a mapping."""

    sent_batches: int
    sent: Mapping[str, int]
    dropped: Mapping[str, int]  # the queue or the disk buffer was full, it waited there for too long, or closing took too long
    left: int  # parts left on disk at closing, for the next sender of this node
    refused: int  # batches that ingest refused for good
    rejected: int  # single records or points that ingest did not keep
    invalid: int  # could not be encoded
    retries: int
    queue_bytes: int
    reachable: bool
    buffer_bytes: int = 0  # on disk
    buffer_age: float | None = None  # seconds that the oldest of it has waited; None: nothing does


class Sender:
    """A connection to ingest at `endpoint` with bearer `token`; `timeout` seconds a request.

    `node` and `service` become the resource attributes host.name and service.name. Parts wait at most
    `flush_interval` seconds, events and transitions not at all. At most `buffer_bytes` wait. Once ingest has been away for some
    seconds, what waits goes to the disk `buffer`, where there is one: it counts as settled there, and is sent in its order, under its
    ids, between what is new, when ingest is back. Without one, events and transitions that cannot be delivered before `close` are left
    in the folder `leftovers`; what others left there is delivered.
    No method raises for what it is given or for what the network does.
    """

    def __init__(
        self,
        endpoint: str,
        token: str,
        timeout: float = 5.0,
        *,
        node: str,
        service: str = "surefoot.agent",
        flush_interval: float = 0.25,
        buffer_bytes: int = 64 << 20,
        leftovers: Path | None = None,
        buffer: DiskBuffer | None = None,
    ) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._timeout = timeout
        self._flush_interval = flush_interval
        self._resource = otlp_wire.resource({"host.name": node, "service.name": service})
        self._queue = Outgoing(buffer_bytes)
        self._backlog = Backlog(buffer, self._queue, self._body) if buffer is not None else None
        self._leftovers = leftovers
        self._leftovers_due = 0.0
        self._left = 0
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, no .netrc: the token goes to ingest alone
        self._session.headers.update({"Authorization": f"Bearer {token}", "Content-Type": "application/x-protobuf"})
        self._trying: deque[tuple[str, list[Item]]] = deque(maxlen=1)  # the batch under way and its id; whoever pops it decides its fate
        self._sent: Counter[str] = Counter()
        self._batches = self._refused = self._rejected = self._invalid = self._retries = 0
        self._reachable = True
        self._last_problem = ""
        self._offset = ClockOffset()
        self._deadline: float | None = None  # of close(), monotonic
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp-sender", daemon=True)
        self._thread.start()

    def send_records(self, records: Sequence[tuple[str, Record]]) -> None:
        """Queues (event name, record) pairs; the event names are those of `pipeline.records.REMOTE`."""
        for event_name, record in records:
            try:
                data = otlp_wire.encode_record(event_name, record)
            except (TypeError, ValueError, AttributeError) as e:
                self._count_invalid(event_name, e)
                continue
            self._queue.put(Signal.LOGS, event_name, data, lasting=event_name in _LASTING)
            if event_name in _LASTING:
                self._wake.set()

    def send_logs(self, lines: Iterable[LogLine]) -> None:
        """Queues printed lines."""
        for line in lines:
            try:
                self._queue.put(Signal.LOGS, "log", otlp_wire.encode_line(line))
            except (TypeError, ValueError) as e:
                self._count_invalid("log", e)

    def send_metrics(self, scopes: Iterable[bytes]) -> None:
        """Queues serialised ScopeMetrics (`exporters.encode` makes them); none is ever split over two requests."""
        for scope in scopes:
            self._queue.put(Signal.METRICS, "metrics", scope)

    def flush(self) -> None:
        """Lets what waits be sent now; returns at once."""
        self._wake.set()

    @property
    def queued(self) -> int:
        """The number of the part queued last; parts count from 1."""
        return self._queue.last

    @property
    def settled(self) -> int:
        """All parts up to this number were delivered, refused or dropped, or are on disk: the end of this process changes nothing."""
        return self._queue.settled

    def clock_offset(self) -> float | None:
        """Seconds by which this machine's clock is ahead of ingest's; None where ingest has not answered lately."""
        return self._offset.seconds(monotonic())

    def stats(self) -> SenderStats:
        """Counts up to now."""
        buffer = self._backlog.buffer if self._backlog else None
        return SenderStats(
            self._batches,
            dict(self._sent),
            dict(Counter(self._queue.dropped) + Counter(buffer.dropped)) if buffer is not None else self._queue.dropped,
            self._left,
            self._refused,
            self._rejected,
            self._invalid,
            self._retries,
            self._queue.bytes,
            self._reachable,
            buffer.size if buffer is not None else 0,
            buffer.age if buffer is not None else None,
        )

    def close(self, timeout: float = 5.0) -> None:
        """Sends what waits for at most `timeout` seconds; leaves or drops the rest, counted. May be called twice."""
        if self._deadline is None:
            # The thread gives up a little earlier, to count what it gave up or to put it on disk.
            self._deadline = monotonic() + (0.6 if self._backlog else 0.9) * timeout
        self._closing.set()
        self._wake.set()
        self._thread.join(max(0.0, self._deadline + (0.4 if self._backlog else 0.1) * timeout - monotonic()))
        self._give_up_trying()  # the thread may still wait for an answer: this process ends before it comes
        while batch := self._queue.take(_ROOM):
            self._leave(uuid4().hex, batch)
            self._queue.settle()

    # --- the background thread ---------------------------------------------------------------

    def _run(self) -> None:
        if self._backlog:
            self._backlog.buffer.open()
        while True:
            closing = self._closing.is_set()
            self._flush()
            if closing:
                if self._backlog:
                    self._backlog.spill(all_of_it=True)
                self._session.close()
                return
            if not self._closing.is_set():
                self._wake.wait(self._flush_interval)
                self._wake.clear()

    def _flush(self) -> None:
        try:
            while not self._too_late() and self._step():
                pass
            self._collect()
        except Exception as e:  # noqa: BLE001 - the one catch-all of this thread: a defect here must not end telemetry
            self._trying.clear()
            self._queue.give_up()
            self._report(f"sending failed: {type(e).__name__}: {e}")

    def _step(self) -> bool:
        """Sends, or puts by, what is new; then tries one of what waits on disk. True where there is more to do now."""
        crowded = self._queue.bytes > self._queue.limit // 2
        put_by = self._backlog is not None and (self._away or crowded) and self._backlog.spill(all_of_it=not self._away)
        if not put_by and not self._away and (batch := self._queue.take(_ROOM)):
            self._deliver(batch)
            self._queue.settle()
        return self._resend() or not (self._away or self._queue.bytes == 0)

    @property
    def _away(self) -> bool:
        """Is ingest away, and is there something on disk to try it with?"""
        return not self._reachable and self._backlog is not None and self._backlog.waits

    def _deliver(self, batch: list[Item]) -> None:
        signal, name = batch[0].signal, uuid4().hex
        self._trying.append((name, batch))
        body, headers = _packed(self._body(batch), name)
        retrying = Retrying(
            retry=retry_if_exception(_temporary), wait=self._pause, stop=self._enough, sleep=self._sleep, before_sleep=self._failed
        )
        while True:
            try:
                answer = retrying(self._post, signal, body, headers)
            except RetryError:
                if self._put_by(name, batch) or self._too_late():
                    self._give_up_trying()
                    return
            except DeliveryError as e:
                self._trying.clear()
                self._refused += 1
                self._report(f"ingest refused a batch of {len(batch)}: {e}")
                return
            else:
                self._trying.clear()
                self._delivered(Counter(item.kind for item in batch), signal, answer)
                return

    def _put_by(self, name: str, batch: Sequence[Item]) -> bool:
        """Puts the batch that is being tried on disk, where there is a place for it."""
        if not self._backlog or not self._backlog.put(name, batch):
            return False
        self._trying.clear()
        self._reachable = False
        return True

    def _resend(self) -> bool:
        """Tries what has waited on disk for longest, where it is time; True where that is done with."""
        if not self._backlog or self._too_late() or (kept := self._backlog.next()) is None:
            return False
        signal, headers = signal_of(kept)
        try:
            answer = self._post(signal, kept.body, headers)
        except DeliveryError as e:
            if not e.permanent:
                self._backlog.away(e.retry_after)
                self._lost(e)
                return False
            self._refused += 1
            self._report(f"ingest refused what waited on disk: {e}")
        else:
            self._delivered(Counter(kept.kinds), signal, answer)
        self._backlog.taken(kept)
        return True

    def _body(self, batch: Sequence[Item]) -> bytes:
        make = otlp_wire.logs_request if batch[0].signal is Signal.LOGS else otlp_wire.metrics_request
        return make(self._resource, [item.data for item in batch])

    def _give_up_trying(self) -> None:
        with suppress(IndexError):
            self._leave(*self._trying.pop())

    def _leave(self, name: str, batch: Sequence[Item]) -> None:
        """Leaves a batch for the next sender under its id where it holds what lasts, else counts it as dropped."""
        lasting = any(item.lasting for item in batch)
        if lasting and self._leftovers and leave(self._leftovers, name, self._body(batch)):
            self._left += len(batch)
        else:
            self._queue.count_dropped(batch)

    def _collect(self) -> None:
        """Delivers what earlier senders of this node left, while ingest takes telemetry: one try each, every few seconds."""
        taken = self._batches > 0 and self._reachable and not self._closing.is_set()
        if self._leftovers is None or not taken or monotonic() < self._leftovers_due:
            return
        self._leftovers_due = monotonic() + _COLLECT_SECONDS
        for one in left(self._leftovers):
            try:
                self._post(Signal.LOGS, *_packed(one.body, one.batch))
            except DeliveryError as e:
                if not e.permanent:
                    return
                self._report(f"ingest refused what was left in {one.path}: {e}")
            one.forget()

    def _post(self, signal: Signal, body: bytes, headers: Mapping[str, str]) -> bytes:
        left = self._timeout if self._deadline is None else max(0.05, min(self._timeout, self._deadline - monotonic()))
        url = self._endpoint + signal
        sent = utcnow().timestamp()
        try:
            with self._session.post(url, data=body, headers=headers, timeout=left, allow_redirects=False, stream=True) as response:
                self._offset.answered(response.headers.get("Date"), sent, utcnow().timestamp(), monotonic())
                answer = response.raw.read(_ANSWER_LIMIT, decode_content=True)
                if response.status_code == 200:
                    return bytes(answer)
                raise explain(url, response.status_code, answer, retry_after(response.headers.get("Retry-After")))
        except (requests.RequestException, HTTPError, OSError) as e:
            raise DeliveryError(f"cannot reach {url}: {why(e)}", permanent=False) from e

    def _delivered(self, kinds: Mapping[str, int], signal: Signal, answer: bytes) -> None:
        self._batches += 1
        self._sent.update(kinds)
        if not self._reachable:
            _log.warning("ingest at %s takes telemetry again", self._endpoint)
        self._reachable = True
        self._last_problem = "" if not answer else self._last_problem
        rejected, why = partial(signal, answer)
        if rejected:
            self._rejected += rejected
            self._report(f"ingest did not keep {rejected} of a batch: {why}")

    # --- when a request fails ----------------------------------------------------------------

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, DeliveryError) else None
        return _BACKOFF(state) if asked is None else asked

    def _enough(self, state: RetryCallState) -> bool:
        return self._too_late() or (self._backlog is not None and self._backlog.enough(state))

    def _too_late(self, _: RetryCallState | None = None) -> bool:
        return self._deadline is not None and monotonic() >= self._deadline

    def _sleep(self, seconds: float) -> None:
        """Waits; closing cuts it short, since then there is little time left to try."""
        if self._deadline is None:
            self._closing.wait(seconds)
        else:
            threading.Event().wait(min(seconds, 0.2, max(0.0, self._deadline - monotonic())))

    def _failed(self, state: RetryCallState) -> None:
        self._lost(state.outcome.exception() if state.outcome else None)

    def _lost(self, error: BaseException | None) -> None:
        self._retries += 1
        if self._reachable:
            self._reachable = False
            _log.warning("%s; telemetry waits (at most %s of it) and is sent later", error, bound(self._queue.limit))

    def _count_invalid(self, kind: str, error: Exception) -> None:
        self._invalid += 1
        self._report(f"a {kind} could not be encoded: {error}")

    def _report(self, problem: str) -> None:
        """Logs `problem` when it is another than the last one."""
        if problem != self._last_problem:
            self._last_problem = problem
            _log.error("%s", problem)


def _packed(body: bytes, batch: str) -> tuple[bytes, dict[str, str]]:
    """A request's body as it travels, and its headers."""
    headers = {"X-Surefoot-Batch": batch}
    if len(body) < _COMPRESS_FROM:
        return body, headers
    return gzip.compress(body, 1), headers | {"Content-Encoding": "gzip"}


def _temporary(error: BaseException) -> bool:
    return isinstance(error, DeliveryError) and not error.permanent
