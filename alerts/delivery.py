"""Delivery: one thread a receiver, from the outbox to the wire, so that a slow receiver delays no other."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Event, Thread

import structlog

from alerts.delivery_rules import GiveUp, after_failure
from alerts.outbox import Outbox, Queued, Result
from alerts.receivers.registry import Receiver
from pipeline.clock import Clock, utcnow
from pipeline.errors import DeliveryError, SurefootError

log = structlog.get_logger("surefoot.delivery")

IDLE = 5.0  # seconds between looks where nothing wakes us: another process may have enqueued
REST = 1.0  # seconds after a failure of our own disk or store
LOST_OUTCOME = 5.0  # seconds after which a try is repeated whose outcome a killed process never learnt

OnResult = Callable[[Result], None]


class Delivery:
    """The threads. Made by `start`."""

    def __init__(self, outbox: Outbox, receivers: Mapping[str, Receiver], on_result: OnResult, clock: Clock) -> None:
        self._outbox, self._on_result, self._clock = outbox, on_result, clock
        self._stopping = Event()
        self._threads = [Thread(target=self._loop, args=(r,), name=f"delivery-{name}", daemon=True) for name, r in receivers.items()]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Begin no further send and wait up to `timeout` seconds for those under way. What is queued stays on disk."""
        self._stopping.set()
        self._outbox.wake()
        end = self._clock() + timedelta(seconds=timeout)
        for thread in self._threads:
            thread.join(max(0.0, (end - self._clock()).total_seconds()))

    def _loop(self, receiver: Receiver) -> None:
        while not self._stopping.is_set():
            seen = self._outbox.news()
            try:
                wait = self._pass(receiver)
            except Exception as e:  # the thread's one catch-all: whatever is wrong, pages must go on
                log.error("delivery_pass_failed", receiver=receiver.name, error=str(e), exc_info=not isinstance(e, SurefootError))
                wait = REST
            self._outbox.wait(seen, wait)

    def _pass(self, receiver: Receiver) -> float:
        """Send what is due, tell back what came of it; gives the seconds until it is worth looking again."""
        for queued in self._outbox.due(receiver.name, self._clock()):
            if self._stopping.is_set():
                return 0.0
            now = self._clock()
            wait = self._outbox.begin(queued, receiver.bucket, now, now + timedelta(seconds=LOST_OUTCOME))
            if wait:
                self._report(receiver)
                return min(wait, IDLE)
            self._try(receiver, queued)
        told = self._report(receiver)
        next_at = self._outbox.next_at(receiver.name)
        wait = IDLE if next_at is None else max(0.0, (next_at - self._clock()).total_seconds())
        return min(wait, IDLE if told else REST)

    def _try(self, receiver: Receiver, queued: Queued) -> None:
        try:
            answer = receiver.send(queued.notification, queued.page)
        except DeliveryError as e:
            self._failed(receiver, queued, e)
        except (ValueError, TypeError, LookupError) as e:  # one page that cannot be rendered must not hold up the others
            log.exception("page_not_rendered", receiver=receiver.name, notification=queued.notification)
            self._failed(receiver, queued, DeliveryError(f"{type(e).__name__}: {e}", permanent=False))
        else:
            self._outbox.mark_sent(queued, self._clock(), answer)

    def _failed(self, receiver: Receiver, queued: Queued, error: DeliveryError) -> None:
        verdict = after_failure(queued.tries + 1, str(error), permanent=error.permanent, retry_after=error.retry_after)
        now = self._clock()
        log.warning(
            "page_not_taken", receiver=receiver.name, notification=queued.notification, tries=queued.tries + 1, verdict=str(verdict)
        )
        if isinstance(verdict, GiveUp):
            self._outbox.mark_failed(queued, now, verdict.reason)
            return
        again = now + timedelta(seconds=verdict.seconds)
        self._outbox.mark_retry(queued, again, verdict.reason)
        if error.retry_after is not None:
            self._outbox.pause(receiver.bucket, again)

    def _report(self, receiver: Receiver) -> bool:
        """Tell outcomes back in order; False where the telling failed and is to be repeated."""
        for result in self._outbox.unreported(receiver.name):
            try:
                self._on_result(result)
            except SurefootError as e:
                log.warning("outcome_not_written", notification=result.notification, error=str(e))
                return False
            self._outbox.reported(result.notification)
        return True


def start(outbox: Outbox, receivers: Mapping[str, Receiver], on_result: OnResult, clock: Clock = utcnow) -> Delivery:
    """Deliver what `outbox` holds, and whatever is enqueued later, to `receivers` (by name).

    `on_result` is called from a delivery thread after the outcome is on disk, and again, also after
    a kill, while it raises a SurefootError: it must be idempotent.
    """
    return Delivery(outbox, receivers, on_result, clock)
