"""What is told to somebody: one page, in words that every receiver can render."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from pipeline.clock import from_micros, to_micros

PageEvent = Literal["trigger", "acknowledge", "resolve"]
TRIGGER, ACKNOWLEDGE, RESOLVE = get_args(PageEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page. `dedup_key` is the alert's, made of the incident's id: all its pages carry it, and no measured value is in it.

    `at` is aware. `links` are (text, address). Text may be of any length: a receiver cuts it to its own limits.
    Details have the most important first.
    Raises ValueError where there is no dedup key, the event is unknown, or `at` is naive.
    """

    dedup_key: str
    event: PageEvent
    severity: str
    summary: str
    source: str
    at: datetime
    component: str = ""
    group: str = ""
    cls: str = ""
    links: tuple[tuple[str, str], ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.dedup_key:
            raise ValueError("a page without a dedup key could never be resolved")
        if self.event not in get_args(PageEvent):
            raise ValueError(f"unknown page event {self.event!r}")
        to_micros(self.at)

    def to_json(self) -> str:
        """This page as kept in the outbox."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return json.dumps({**plain, "at": to_micros(self.at), "links": self.links, "details": dict(self.details)})


_PLAIN = ("dedup_key", "event", "severity", "summary", "source", "component", "group", "cls")


def from_json(text: str) -> Page:
    """The page that `Page.to_json` wrote."""
    kept = json.loads(text)
    links = tuple((label, href) for label, href in kept["links"])
    return Page(**{name: kept[name] for name in _PLAIN}, at=from_micros(kept["at"]), links=links, details=kept["details"])
