"""Where a launcher of several waits for the others: for its first attempt, after a stop for the next, and after its own good end.

The leader brings them together: it issues an attempt once enough have come, and names its nodes in order. Who is not
named goes on waiting, as a spare.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from exporters.job.control import Issued, Poller, Request, same_attempt
from exporters.job.door import wait_at_the_door
from exporters.job.journal import Journal
from exporters.job.loop import Loop
from exporters.job.outcome import End, Next
from exporters.job.surroundings import Search
from pipeline.catalog.actions import CAPTURE, END_RUN, RESTART_RUN, STOP_RUN
from pipeline.catalog.runs import DONE, FINISHING, READY, STARTING, UNHEARD, Nodes, ended_here
from pipeline.clock import monotonic
from pipeline.settings import JobSettings

_LOOK: Final = 0.05  # seconds between two looks at what came
_FAILED: Final = 1  # the exit code where no command ran here at all
_log = structlog.get_logger()

Say = Callable[[str, str, int, str], None]
"""Tells the control plane our state, attempt ("" while we wait for one), launch, and newest checkpoint."""


@dataclass(slots=True)
class Meeting:
    """Waits of one launcher. `refusal` tells why a request must not be carried out."""

    node: str
    nodes: Nodes
    loop: Loop
    poller: Poller
    journal: Journal
    say: Say
    turn: Callable[[float], None]
    refusal: Callable[[Request], str]
    patience: JobSettings
    alone: bool  # whether an attempt could be begun without the control plane

    def first(self, launch: int, search: Search) -> Next | End | None:
        """The first attempt; None where the control plane does not answer."""
        _log.info("waiting for the launchers of the other nodes", wanted=str(self.nodes), here=self.node)
        self._await(search)
        self.say(STARTING, "", launch, search.told)
        self.poller.start()
        return self._come(launch)

    def spare(self, launch: int, search: Search) -> Next | End:
        """The next attempt that takes this node in, after one that was begun without it."""
        self._await(search)
        self.say(STARTING, "", launch, search.told)
        return self._come(launch) or End(_FAILED, self.poller.away)

    def _come(self, launch: int) -> Next | End | None:
        without, deadline = "", monotonic() + self.patience.gather_timeout
        while monotonic() < deadline:
            self.turn(_LOOK)
            wait_at_the_door(self.poller, self.loop, self.turn)
            if end := self._asked_to_end("before an attempt was started here") or self._over():
                return end
            if issued := self._mine(launch):
                return Next(issued)
            if self._nobody_answers and (self.alone or self.poller.refused):
                return None
            if self.poller.last.without:  # for as long as it takes: the run is under way
                deadline = monotonic() + self.patience.gather_timeout
            if self.poller.last.without not in ("", without):
                without = self.poller.last.without
                _log.info("this node waits as a spare", goes_on=without)
            while self.loop.requests:
                request = self.loop.requests.popleft()
                ours = ("", without) if request.kind in (STOP_RUN.name, END_RUN.name) else ("",)
                if request.attempt in ours and (end := self._ends(request, request.attempt, 0)):
                    return end
        return End(
            _FAILED, f"no attempt was issued within {self.patience.gather_timeout:g} s: the run takes {self.nodes} nodes, and fewer came"
        )

    @property
    def _nobody_answers(self) -> bool:
        """Nor did anybody: one that was heard comes back, and the other launchers wait for it, too."""
        return not self.poller.heard and self.poller.silent_for() > self.patience.control_timeout

    def next(self, request: Request, attempt: str, search: Search, code: int) -> Next | End:
        """The attempt after `attempt`, which `request` stopped here and, at its own pace, on every other node."""
        self.poller.open = True
        self._await(search)
        deadline = monotonic() + self.patience.verdict_timeout
        while monotonic() < deadline:
            self.say(READY, "", request.launch, search.told)
            self.turn(_LOOK)
            if end := self._asked_to_end(f"after attempt {attempt}"):  # the others need not wait: our last word tells them
                return end
            if end := self._over():
                return replace(end, code=code)
            if issued := self._mine(request.launch):
                return Next(issued, replace(request, new_attempt=issued.attempt, launch=issued.launch))
            if self.poller.last.without:
                return self.spare(request.launch, search)
            while self.loop.requests:
                asked = self.loop.requests.popleft()
                if end := self._ends(asked, attempt, code):
                    return end
                request = self._again(request, asked, attempt)
        self._tell(attempt, request, "failed", why := f"no attempt was issued within {self.patience.verdict_timeout:g} s")
        return End(code, why)

    def end(self, attempt: str, launch: int, others: int | None) -> Next | End | Request:
        """After our command ended well: the end of the run, or the request that begins it anew on all nodes.

        `others`, where we speak for the run: the other nodes, whose commands end by themselves, and are not left to run on unwatched.
        """
        self.poller.open = True
        self.say(DONE if others is None else FINISHING, attempt, launch, "")
        deadline = monotonic() + self.patience.verdict_timeout
        while others is not None or monotonic() < deadline:
            self.turn(_LOOK)
            if end := self._asked_to_end("after the command ended well here") or self._over():
                return replace(end, code=0)
            if others is not None and (end := self._all_ended(others)):
                return end
            if self.poller.last.without:
                return self.spare(launch + 1, Search(None))
            while self.loop.requests:
                asked = self.loop.requests.popleft()
                if end := self._ends(asked, attempt, 0 if asked.kind == STOP_RUN.name else _FAILED):
                    return end
                if asked.kind == RESTART_RUN.name and not self._refused(asked, attempt):
                    self._tell(attempt, asked, "accepted", asked.reason)
                    return asked
        return End(0, f"the command ended well here, and nobody told the run's end within {self.patience.verdict_timeout:g} s")

    def _all_ended(self, others: int) -> End | None:
        """The end of the run for one who speaks for it: no other node's command runs on, as far as anybody knows."""
        if self.poller.silent_for() > self.patience.control_timeout:
            return End(0, UNHEARD)
        if (known := self.poller.last.others) is None or known.unfinished:
            return None
        return End(0, ended_here(others - known.finished, others))

    def _await(self, search: Search) -> None:
        """Who asks says which checkpoint it sees: all are to resume from one, so nobody asks before that is known."""
        while search.is_alive() and not self.loop.asked_to_end:
            self.turn(_LOOK)

    def _mine(self, launch: int) -> Issued | None:
        issued = self.loop.issued
        return issued if issued and issued.launch >= launch and self.node in issued.nodes else None

    def _over(self) -> End | None:
        """The end of the run, told by who speaks for it; where that were we, others went on without us."""
        if not self.poller.over:
            return None
        self.journal.speaks = False
        return End(0, f"the run is over: {self.poller.over}")

    def _asked_to_end(self, when: str) -> End | None:
        number = self.loop.asked_to_end
        return End(-number, f"ended by {number.name} {when}", asked=True) if number else None

    def _ends(self, request: Request, attempt: str, code: int) -> End | None:
        """Carries out a request to end; answers one for evidence, unless it is for an attempt that we, a spare, have no part in."""
        if request.kind == CAPTURE.name and same_attempt(request.attempt, attempt, attempt) and not self._refused(request, attempt):
            self._tell(attempt, request, "refused", "no attempt runs here")
        if request.kind not in (STOP_RUN.name, END_RUN.name):
            return None
        if self._refused(request, attempt):
            return None
        self._tell(attempt, request, "accepted", request.reason)
        self._tell(attempt, request, "done", "the launcher ends")
        return End(code, request.reason or "stopped on request", asked=request.kind == STOP_RUN.name)

    def _again(self, request: Request, asked: Request, attempt: str) -> Request:
        """The request that counts: a second one to restart what is stopped here already takes the first one's place."""
        if asked.kind != RESTART_RUN.name or self._refused(asked, attempt):
            return request
        self._tell(attempt, asked, "accepted", asked.reason)
        return asked

    def _refused(self, request: Request, attempt: str) -> bool:
        why = "" if same_attempt(request.attempt, attempt, attempt) else f"it is for attempt {request.attempt}, which is not here"
        if why := why or self.refusal(request):
            self._tell(attempt, request, "refused", why)
        return bool(why)

    def _tell(self, attempt: str, request: Request, code: str, message: str) -> None:
        self.journal.progress(attempt, request, code, message)
