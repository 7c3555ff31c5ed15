"""A flood of one line becomes a few events and one with a count. Bounded memory, whatever is logged."""

import re
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from pipeline.records import Event

BURST: Final = 5  # events of one text that are told one by one
WINDOW: Final = 60.0  # seconds, after which what came beyond them is told as one
TEXTS: Final = 500  # texts that are told apart at a time
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+")

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Text:
    since: float
    told: int = 0
    held: int = 0  # how many were not told
    first: int = 0  # the sequence number of the first of them
    last: Event | None = None  # the newest of them


@dataclass(slots=True)
class Floods:
    """Lines of the last WINDOW by their text, in which numbers count for nothing but for what the event is about."""

    _texts: dict[_Key, _Text] = field(default_factory=dict)

    def take(self, event: Event, sequence: int, clock: float) -> Event | None:
        """The event, where it is to be told now; None where it will be told with others. `clock` is any seconds."""
        key: _Key = (event.kind, event.code, event.device, _NUMBERS.sub("#", event.message))
        if key not in self._texts and len(self._texts) >= TEXTS:
            key = (event.kind,)  # there are few kinds
        text = self._texts.setdefault(key, _Text(clock))
        if text.told < BURST:
            text.told += 1
            return event
        text.first = text.first if text.held else sequence
        text.held += event.count
        text.last = event
        return None

    def due(self, clock: float) -> list[Event]:
        """One event for each text of which more came than was told, once its window is over."""
        over = [key for key, text in self._texts.items() if clock - text.since >= WINDOW]
        return [_counted(text.last, text) for text in map(self._texts.pop, over) if text.last is not None]

    @property
    def oldest(self) -> int | None:
        """The first sequence number that has not been told in any way."""
        return min((text.first for text in self._texts.values() if text.held), default=None)


def _counted(last: Event, text: _Text) -> Event:
    """Its id follows from the first that it stands for."""
    name = f"{last.id}\x1f{text.first}\x1f{text.held}"
    return replace(last, id=blake2b(name.encode(), digest_size=16).hexdigest(), count=text.held)
