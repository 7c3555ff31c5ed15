"""What the agent sends through."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from exporters.sending.sender import SenderStats
from pipeline.records import Record


class Outlet(Protocol):
    """A Sender, or what stands in its place. Nothing here raises or waits, but for `close`."""

    def send_records(self, records: Sequence[tuple[str, Record]]) -> None:
        """(event name, record) pairs."""

    def send_metrics(self, scopes: Iterable[bytes]) -> None:
        """Serialised ScopeMetrics."""

    def flush(self) -> None:
        """Lets what waits go now."""

    @property
    def queued(self) -> int:
        """The number of the part that was given last."""

    @property
    def settled(self) -> int:
        """All parts up to this number are delivered or kept."""

    def clock_offset(self) -> float | None:
        """Seconds by which this machine's clock is ahead of ingest's; None where that is not known."""

    def stats(self) -> SenderStats:
        """Counts up to now."""

    def close(self, timeout: float = 5.0) -> None:
        """Sends what waits for at most `timeout` seconds."""
