"""Silences, maintenance windows and pauses as the leader writes them: begun and ended as asked, closed when their time is over."""

from dataclasses import dataclass
from datetime import datetime

from alerts.book import Book
from alerts.ids import mint
from alerts.silences import END_MAINTENANCE, END_SILENCE, ENDED, MAINTAIN, PAUSE, RESUME, SILENCE, canonical, over
from alerts.transitions import follow
from pipeline.errors import InputError
from pipeline.hold_records import HoldTransition, MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.records import Request

BEGIN: dict[str, type[HoldTransition]] = {SILENCE: SilenceTransition, MAINTAIN: MaintenanceTransition, PAUSE: PauseTransition}
END: dict[str, type[HoldTransition]] = {END_SILENCE: SilenceTransition, END_MAINTENANCE: MaintenanceTransition}


def hold_id(intent: str) -> str:
    """The id of the hold that a request begins: known to whoever asks before the leader has answered."""
    return mint("hold", intent)[:12]


@dataclass(frozen=True, slots=True)
class Holds:
    """Keeps the book's holds. Raises StoreError; everything may be repeated."""

    book: Book

    def carry_out(self, request: Request, now: datetime) -> str:
        """What is asked about holds; the answer in words."""
        if kind := BEGIN.get(request.kind):
            return self._begin(kind, request, now)
        if request.kind == RESUME:
            return self._resume(request, now)
        hold = self.book.holds.get(request.target)
        if not isinstance(hold, END[request.kind]) or hold.new_state == ENDED:
            return "nothing of that id holds"
        return self._end(hold, request, now)

    def close(self, now: datetime) -> None:
        """End what is over."""
        for hold in list(self.book.holds.values()):
            if reason := over(hold, now):
                self.book.write(follow(hold, ENDED, reason, now))

    def _begin(self, kind: type[HoldTransition], request: Request, now: datetime) -> str:
        hold = hold_id(request.intent)
        if hold in self.book.holds:
            return "it was begun before"
        try:
            matcher = "" if kind is PauseTransition else canonical(request.target)
        except InputError as e:
            return f"refused: {e}"
        if request.ends_at is None and kind is not PauseTransition:
            return "refused: it has no end"
        self.book.write(
            kind(
                old_state="",
                new_state="held",
                reason=request.reason,
                actor=request.actor,
                at=now,
                hold=hold,
                matcher=matcher,
                owner=request.actor,
                starts_at=max(request.starts_at or now, now),
                ends_at=request.ends_at,
            )
        )
        return f"held as {hold}"

    def _resume(self, request: Request, now: datetime) -> str:
        mine = [h for h in self.book.holds.values() if isinstance(h, PauseTransition) and h.new_state != ENDED]
        for hold in mine:
            self._end(hold, request, now)
        return "resumed" if mine else "acting is not paused"

    def _end(self, hold: HoldTransition, request: Request, now: datetime) -> str:
        self.book.write(follow(hold, ENDED, request.reason or f"ended by {request.actor}", now, actor=request.actor))
        return "ended"
