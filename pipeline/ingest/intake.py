"""Takes a request in: reads it, keeps it in the spool, and only then lets it be acknowledged."""

from collections.abc import Callable
from typing import Final

from pipeline.errors import InputError, SpoolFull, SurefootError
from pipeline.ingest.arrivals import Arrival, Form
from pipeline.ingest.batches import Kept
from pipeline.ingest.health import Health
from pipeline.ingest.seen import Seen, Verdict
from pipeline.ingest.spool import Spool
from pipeline.otlp.decoded import Decoded

Wake = Callable[[Decoded, int], None]
_BEATS: Final = "beats"


class Busy(SurefootError):
    """The same request is being kept right now: its sender should ask again."""

    permanent = False


class Intake:
    """The way into the spool. `wake` is told of each entry: its rows and its size in bytes."""

    def __init__(self, spool: Spool[Kept], seen: Seen, wake: Wake, health: Health) -> None:
        self._spool = spool
        self._seen = seen
        self._wake = wake
        self._health = health

    def take(self, arrival: Arrival) -> Decoded:
        """Keeps a request and returns what it says once it is on disk. May block for a disk's fsync.

        Raises InputError where it cannot be read, SpoolFull or Busy where it cannot be kept now.
        """
        decoded = arrival.decode()
        if decoded.count == 0:
            self._health.received(arrival.signal, decoded)
            return decoded
        verdict = self._seen.begin(arrival.batch) if arrival.batch else Verdict.NEW
        if verdict is Verdict.BUSY:
            raise Busy("the same request is being kept right now")
        if verdict is Verdict.KEPT:
            self._health.repeated(arrival.signal, decoded)
            return decoded
        self._keep(arrival, decoded)
        self._health.received(arrival.signal, decoded)
        return decoded

    def note(self, arrival: Arrival) -> bool:
        """Adds a sign of life made here, without waiting for the disk; says whether there was room."""
        decoded = arrival.decode()
        payload = arrival.to_bytes()
        try:
            self._spool.put(payload, Kept("", decoded))
        except SpoolFull as e:
            self._health.not_kept(str(e))
            return False
        self._health.kept()
        self._health.received(_BEATS, decoded)
        self._wake(decoded, len(payload))
        return True

    def _keep(self, arrival: Arrival, decoded: Decoded) -> None:
        payload = arrival.to_bytes()
        try:
            ticket = self._spool.put(payload, Kept(arrival.batch, decoded))
            self._wake(decoded, len(payload))
            self._spool.sync(ticket)
        except SpoolFull as e:
            self._seen.forget(arrival.batch)
            self._health.not_kept(str(e))
            raise
        self._health.kept()
        if arrival.batch:
            self._seen.keep(arrival.batch)


def read_back(payload: bytes) -> Kept:
    """An entry of the spool as it was when it came; raises InputError where it cannot be read."""
    arrival = Arrival.from_bytes(payload)
    return Kept(arrival.batch, arrival.decode())


def batch_of(payload: bytes) -> str:
    """The sender's id of an entry of the spool, "" where there is none."""
    try:
        arrival = Arrival.from_bytes(payload)
    except InputError:
        return ""
    return arrival.batch if arrival.form is not Form.BEATS else ""
