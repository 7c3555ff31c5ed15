"""What a failed attempt printed about a file system just before its end: few trainings leave their error where torchrun finds it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from alerts.incidents.causes import FAILED, TOLD
from pipeline.queries.attempt_words import attempt_words
from pipeline.records import IncidentTransition
from pipeline.store import Store

BEFORE, AFTER = timedelta(seconds=10), timedelta(seconds=5)
"""Around the onset of its failure: an error that it lived with for longer did not end it; the launcher may see the end first."""
LATE: Final = timedelta(seconds=20)  # lines that come later than this are not waited for
LOOK: Final = timedelta(seconds=1)
WORDS: Final = tuple(word for told in TOLD.values() for word in told)


@dataclass(slots=True)
class LastWords:
    """Asks the store, once for each incident and while lines may still come once a second."""

    store: Store
    _heard: dict[str, tuple[datetime, str]] = field(default_factory=dict)  # by incident: until when it holds, and what

    def of(self, incident: IncidentTransition, now: datetime) -> str:
        """The lines of the incident's attempt that tell of a file system, "" where there are none. Raises StoreError."""
        if incident.fault not in FAILED or not incident.attempt or incident.onset is None:
            return ""
        until, text = self._heard.get(incident.incident, (now, ""))
        if text or now < until:
            return text
        since = incident.onset - BEFORE
        lines = attempt_words(self.store, incident.attempt, incident.node, WORDS, since, incident.onset + AFTER)
        again = now + (LOOK if now - incident.onset < LATE else timedelta(days=1))
        self._heard[incident.incident] = (again, " ".join(lines))
        return self._heard[incident.incident][1]

    def forget(self, open_ones: set[str]) -> None:
        """Drop what is known of incidents that are over."""
        self._heard = {name: heard for name, heard in self._heard.items() if name in open_ones}
