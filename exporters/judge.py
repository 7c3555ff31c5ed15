"""How each collector has been doing since the agent's start."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from exporters.collector import Reading
from exporters.passes import Outcome
from pipeline.catalog.metrics import AGENT

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Record:
    rejected: int = 0
    last_success: float | None = None
    error: str = ""
    seconds: float = 0.0
    absent: bool = False


class Judge:
    """Keeps the records of the collectors on `node`. `news`: one that found something found nothing, or the reverse, since `readings`."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.news = False
        self._records: dict[str, _Record] = {}

    def failed(self, outcome: Outcome, at: float) -> bool:
        """Takes note of an outcome at `at` (seconds since 1970); True where its collector has just begun to fail."""
        first = outcome.name not in self._records
        record = self._records.setdefault(outcome.name, _Record())
        self.news |= not first and record.absent != bool(outcome.absent)
        before, record.error = record.error, outcome.error
        record.rejected += outcome.rejected
        record.seconds = outcome.seconds
        record.absent = bool(outcome.absent)
        if not outcome.error:
            record.last_success = at
        if outcome.error != before:
            _log.warning("collector %s: %s", outcome.name, outcome.error or "gives readings again")
        return bool(outcome.error) and not before

    def readings(self, at: float) -> Iterator[Reading]:
        """A reading at `at` (seconds since 1970) about each collector that was heard of."""
        self.news = False
        for name, record in self._records.items():
            yield Reading(
                AGENT,
                {"node": self._node, "collector": name},
                {
                    "agent.collect.ok": int(not record.error),
                    "agent.collect.time": record.seconds,
                    "agent.rejected": record.rejected,
                    "agent.last_success": record.last_success,
                    "agent.age": None if record.last_success is None else max(0.0, at - record.last_success),
                    "agent.absent": int(record.absent),
                },
            )
