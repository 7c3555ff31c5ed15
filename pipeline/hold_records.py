"""Records of what a person asked Surefoot to leave undone for a while: silences, maintenance windows, pauses of all acting."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pipeline.records import Record, Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldTransition(Transition):
    """One change of a hold, written by the leader. It holds from `starts_at` until `ends_at`, or until it is ended before."""

    states: ClassVar[tuple[str, ...]] = ("held", "ended")
    hold: str
    matcher: str  # "node=node-7", "run=r,rank=3": what it is about (alerts/silences.py); "" for everything
    owner: str
    starts_at: datetime
    ends_at: datetime | None = None  # None: until somebody ends it

    def holds(self, at: datetime) -> bool:
        """Whether it held at `at`, by its own times: the leader may close it later."""
        return self.starts_at <= at and (self.ends_at is None or at < self.ends_at) and (self.new_state != "ended" or at < self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceTransition(HoldTransition):
    """Pages are held back; detection, incidents and actions go on."""

    table: ClassVar[str] = "silences"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceTransition(HoldTransition):
    """Pages are held back and nothing is done to what the window is about: somebody works on it."""

    table: ClassVar[str] = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTransition(HoldTransition):
    """No action at all is issued; detection and pages go on."""

    table: ClassVar[str] = "pauses"


HOLD_RECORDS: tuple[type[Record], ...] = (SilenceTransition, MaintenanceTransition, PauseTransition)
