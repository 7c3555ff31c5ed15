"""The launcher: starts a command as an attempt of a run, watches it, and starts it again when that is asked for."""

import os
import time
from dataclasses import dataclass, field, replace
from logging import INFO, WARNING
from pathlib import Path
from typing import Final
from urllib.parse import quote

import structlog

from exporters.job import boot, door
from exporters.job import nodes as placing
from exporters.job.attempt import Attempt, Start, begin
from exporters.job.control import Client, Issued, Poller, Request, refusal, same_attempt
from exporters.job.facts import Facts
from exporters.job.journal import Journal
from exporters.job.launches import attempt_id, last_launch, note_launch
from exporters.job.loop import Loop
from exporters.job.meeting import Meeting
from exporters.job.outcome import End, Next
from exporters.job.policy import Failure, decide
from exporters.job.standing import Standing
from exporters.job.strays import end_strays
from exporters.job.surroundings import Search, environment, prepare_rings, tell_losses, token
from exporters.job.tee import Printed, Shipper
from exporters.job.tree import Tree, become_subreaper
from exporters.sending.leftovers import folder_of
from exporters.sending.sender import Sender
from pipeline.catalog.actions import CAPTURE, RESTART_RUN, STOP_RUN
from pipeline.catalog.runs import GONE, RUNNING, STARTING, STOPPING, WAITING, Nodes, last_ranks
from pipeline.clock import monotonic, utcnow
from pipeline.settings import Settings

_SWEEP_GRACE: Final = 1.0  # seconds that processes left by an ended command get to end by themselves
_KILL_LIMIT: Final = 15.0  # seconds of killing, beyond the grace, after which a process counts as immortal
_LOOK: Final = 0.25  # seconds between two looks at the clock while waiting for a verdict
_FLUSH, _FLUSH_BLIND = 5.0, 2.0  # seconds for the last telemetry, and where ingest was away anyway
_log = structlog.get_logger()


@dataclass(slots=True)
class Launcher:
    """One run from this node. `main` is the state machine: starting → running → (stopping | waiting) → running … → end.

    With launchers on other nodes it meets them (exporters/job/meeting.py) before each attempt and after its own good end.
    """

    settings: Settings
    command: list[str]
    run: str
    checkpoints: Path | None
    nodes: Nodes = field(default_factory=Nodes)
    only: bool = False  # surely the only one of the run on this node: what is left here of earlier attempts is nobody's
    state: str = STARTING
    launch: int = 1
    loop: Loop = field(default_factory=Loop)
    _failures: list[Failure] = field(default_factory=list)
    _restarts: list[float] = field(default_factory=list)
    _hinted: bool = False
    _issued: Issued = field(default_factory=lambda: Issued("", 0))
    _tree: Tree = field(init=False)
    _journal: Journal = field(init=False)
    _poller: Poller = field(init=False)
    _meeting: Meeting = field(init=False)
    _standing: Standing = field(init=False)
    _shipper: Shipper = field(init=False)
    _facts: Facts = field(init=False)

    def main(self) -> int:
        """Runs to the end; gives the exit code."""
        prepare_rings(self.settings.ring_dir)
        self.launch = last_launch(self._launches, self.run) + 1
        become_subreaper()
        self._tree = Tree()
        endpoint, secret, node = self.settings.ingest.endpoint, token(self.settings), self.settings.node
        client = Client(endpoint, secret, self.run, node)
        sender = Sender(endpoint, secret, node=node, service="surefoot.run", leftovers=folder_of(self.settings.ring_dir))
        self._journal = Journal(sender, self.run, node, self.command, str(self.checkpoints or ""))
        self._shipper = Shipper(self._ship, self.loop.inbox.put)
        self._facts = Facts(self._tree, self._journal.ran_with, self.command)
        self._standing = Standing(str(self.nodes), placing.address_towards(endpoint, node) if self.nodes.several else "")
        self._standing.say(STARTING, "", self.launch)
        self._poller = Poller(client, lambda: self._standing.situation, self.loop.inbox.put, self.settings.job.control_timeout)
        self._meeting = Meeting(
            node,
            self.nodes,
            self.loop,
            self._poller,
            self._journal,
            self._standing.say,
            self._turn,
            self._why_not,
            self.settings.job,
            not placing.unknown(self.command),
        )
        try:
            with self.loop.signals():
                end = self._run()
        finally:
            if self.loop.attempt:
                self.loop.attempt.leave_nothing(_KILL_LIMIT)
            self._facts.close()
            self._standing.say(GONE, self._standing.situation.attempt, self.launch, ranks=last_ranks(self._standing.situation.state))
            self._poller.close()
            sender.close(_FLUSH if sender.stats().reachable else _FLUSH_BLIND)
            tell_losses(sender.stats(), self._shipper.dropped)
        return end.code if end.code >= 0 else 128 - end.code

    def _run(self) -> End:
        _log.info("run", run=self.run, console=f"{self.settings.console.link}/run?run={quote(self.run)}")
        end: Next | End = self._first()
        while isinstance(end, Next):
            end = self._attempt(end)
        if self._issued.launch or not self.nodes.several:  # of several, who never began has nothing to say of the run
            if self._journal.speaks is None:
                self._journal.speak(placing.leads(self.command, os.environ))
            self._journal.run_is(end.state, end.reason, exit_code=end.code)
        _log.log(WARNING if end.state == "failed" else INFO, "run ended", run=self.run, exit=end.code, reason=end.reason)
        return end

    # --- starting ---------------------------------------------------------------------------------

    def _first(self) -> Next | End:
        """The first attempt: the one that the leader issues, or our own where nobody answers in time."""
        if self.nodes.several:
            first = self._meeting.first(self.launch, Search(self.checkpoints))
            if first is None and (missing := placing.unknown(self.command)):
                return End(boot.NOT_EXECUTABLE, f"{self._poller.away}: {missing} cannot be known without it")
            return first or self._alone(self._poller.away)
        issued = door.first(self._poller, self.loop, self._journal, self._turn, self.settings.job.control_timeout)
        return issued or self._alone("no attempt was issued in time")

    def _alone(self, reason: str) -> Next:
        """Our own first attempt. The launchers of other nodes mint the same, where their counts of launches agree; the leader adopts it."""
        self._journal.speaks = None if self.nodes.several else True
        self._standing.minted_at = monotonic() if self.nodes.several else None
        self._journal.run_is("started", "surefoot run")
        return Next(self._mint(self.launch, reason))

    def _adopt(self, attempt: Attempt | None) -> None:
        """Of several launchers, once the leader knows of the attempt that they began by themselves: who speaks for it."""
        issued = self._poller.last.adopted
        if self._journal.speaks is None and issued and attempt and issued.attempt == attempt.start.attempt:
            attempt.start = replace(attempt.start, nodes=issued.nodes, master=issued.master)
            self._issued, self._standing.minted_at = issued, None
            self._journal.speak(issued.speaks(self.settings.node))

    def _mint(self, launch: int, reason: str) -> Issued:
        issued = Issued(attempt_id(self.run, launch), launch)
        self._journal.attempt_is(issued.attempt, launch, "issued", f"issued by the launcher: {reason}")
        return issued

    def _begin(self, following: Next) -> Attempt | End:
        several = bool(following.issued.nodes)
        search = Search(None if several and following.issued.resume else self.checkpoints)
        while search.is_alive() and not self.loop.asked_to_end:
            self._turn(0.02)
        if number := self.loop.asked_to_end:
            why = f"ended by {number.name} before attempt {following.issued.attempt} was started"
            return self._not_begun(following, -number, why, asked=True)
        issued, request = following.issued, following.request
        if self.only and not self._issued.launch:
            end_strays(self.run, self.settings.node, self.settings.ring_dir, self._turn)
        self.launch = issued.launch
        note_launch(self._launches, self.run, issued.launch)
        resume = issued.resume or str(search.found or "")
        self._issued = issued
        if several:
            self._journal.speaks = issued.speaks(self.settings.node)
        self._journal.run_is("started", "surefoot run")
        start = Start(
            issued.attempt,
            issued.launch,
            placing.told(self.command, issued, self.settings.node),
            environment(self.settings, self.run, issued.attempt, self.checkpoints, resume),
            self.settings.ring_dir,
            resume,
            request.id if request else "",
            issued.nodes,
            issued.master,
        )
        try:
            attempt = self.loop.attempt = begin(start, self._tree, self._journal, self.loop.selector, self._shipper)
        except OSError as e:
            return self._not_begun(following, boot.NOT_EXECUTABLE, f"the command could not be started: {e.strerror}")
        self._facts.begin(start)
        self._enter(RUNNING)
        _log.info("attempt started", attempt=issued.attempt, resume_from=resume or "the start", why=request.reason if request else "")
        if request:
            self._journal.progress(issued.attempt, request, "done", f"attempt {issued.attempt} was started")
        return attempt

    def _not_begun(self, following: Next, code: int, reason: str, asked: bool = False) -> End:
        if following.request:
            self._journal.progress(following.issued.attempt, following.request, "failed", reason)
        return End(code, reason, asked)

    # --- running ----------------------------------------------------------------------------------

    def _attempt(self, following: Next) -> Next | End:
        """One attempt from its start to its end, and what follows it."""
        attempt = self._begin(following)
        if isinstance(attempt, End):
            return attempt
        while attempt.code is None:
            self._turn(_LOOK)
            self._heed(attempt)
            if (given_up := self._given_up(attempt)) is not None:
                return given_up
            while self.loop.requests and attempt.code is None:
                if (served := self._serve(attempt, self.loop.requests.popleft())) is not None:
                    return served
        if attempt.scan():
            attempt.stop(grace=_SWEEP_GRACE, limit=_SWEEP_GRACE + _KILL_LIMIT, turn=self._turn)
        code = self._ended(attempt, attempt.reason)
        if number := self.loop.asked_to_end:
            return End(code, f"ended by {number.name} to the launcher", asked=True)
        if code != 0:
            return self._verdict(attempt, code)
        if not attempt.start.nodes:
            return End(0, "the command ended well")
        others = len(attempt.start.nodes) - 1 if self._journal.speaks else None
        after = self._meeting.end(attempt.start.attempt, attempt.start.launch, others)
        return self._follow(after, attempt, 0) if isinstance(after, Request) else after

    def _heed(self, attempt: Attempt) -> None:
        """An interrupt is the command's to handle, so long as nobody gives a second one: it may be saving its work."""
        if self.loop.asked_to_kill:
            _log.warning("interrupted twice: the command is killed")
            attempt.stop(grace=0.0, limit=_KILL_LIMIT, turn=self._turn)
        elif self.loop.asked_to_end and not self._hinted:
            self._hinted = True
            _log.info("the command was asked to end; interrupt once more to kill it", signal=self.loop.asked_to_end.name)

    def _serve(self, attempt: Attempt, request: Request) -> Next | End | None:
        """Carries out a request while the command runs; what follows where that ends the attempt."""
        if why := self._refusal(attempt, request):
            self._journal.progress(attempt.name, request, "refused", why)
            return None
        self._journal.progress(attempt.name, request, "accepted", request.reason)
        if request.kind == CAPTURE.name:
            attempt.capture(self._turn)
            self._journal.progress(attempt.name, request, "done", "evidence was taken")
            return None
        return self._stop(attempt, request)

    def _stop(self, attempt: Attempt, request: Request) -> Next | End:
        """Ends the attempt as asked: evidence first, then every process."""
        self._enter(STOPPING)
        start = attempt.start
        attempt.announce_stop(request.reason or request.kind, request.id)
        attempt.capture(self._turn)
        result = attempt.stop(grace=request.grace, limit=request.grace + _KILL_LIMIT, turn=self._turn)
        why = f"stopped within {result.seconds:.2f} s: {request.reason or request.kind}"
        code = self._ended(attempt, "; ".join(filter(None, (attempt.first_failure, why))), action=request.id)
        if result.left:
            why = f"processes {', '.join(map(str, result.left))} do not die"
            self._journal.progress(start.attempt, request, "failed", why)
            return self._verdict(attempt, code)
        if request.kind == RESTART_RUN.name:
            return self._follow(request, attempt, code)
        self._journal.progress(start.attempt, request, "done", "the run was stopped")
        return End(code, request.reason or "stopped on request", asked=request.kind == STOP_RUN.name)

    def _given_up(self, attempt: Attempt) -> Next | End | None:
        """Of several: what follows where the run went on without this node, or is over, while the command still runs here."""
        without, over = self._poller.last.without, self._poller.over
        if not self.nodes.several or attempt.code is not None or not (without or over):
            return None
        self._enter(STOPPING)
        self._journal.speaks = False
        why = f"attempt {without} was begun without this node" if without else f"the run is over: {over}"
        attempt.announce_stop(why)
        attempt.stop(grace=0.0 if without else self.settings.job.grace, limit=self.settings.job.grace + _KILL_LIMIT, turn=self._turn)
        code = self._ended(attempt, why)
        return self._left_out(attempt) if without else End(code, why)

    def _left_out(self, attempt: Attempt) -> Next | End:
        self._journal.speaks = False
        _log.warning("the run went on without this node", attempt=attempt.start.attempt, goes_on=self._poller.last.without)
        return self._meeting.spare(attempt.start.launch + 1, Search(self.checkpoints))

    def _ended(self, attempt: Attempt, reason: str, action: str = "") -> int:
        """Writes the end of the attempt, after the ends of its ranks; gives the command's exit code."""
        attempt.scan()
        while attempt.unsettled:
            self._turn(0.05)
        attempt.close()
        self._turn(0.0)  # torchrun's last words
        self.loop.attempt = None
        if self.nodes.several and self._journal.speaks and self._poller.heard:
            self._poller.ask_now(tries=3)  # after a freeze the run may have gone on without us, also where we were asked to stop
            self._journal.speaks = not self._poller.last.without
        code = attempt.code
        if code is None:  # it does not die: in D state
            code = -9
        self._journal.attempt_is(attempt.start.attempt, attempt.start.launch, "ended", reason, exit_code=code, action=action)
        if not self._journal.speaks:
            self._journal.command_exited(attempt.start.attempt, code, reason, stopped=attempt.stopped)
        self._failures.append(Failure(monotonic(), attempt.at_start(self.settings.detect.start_limit)))
        _log.log(WARNING if code else INFO, "attempt ended", attempt=attempt.start.attempt, exit=code, reason=reason)
        return code

    # --- waiting ----------------------------------------------------------------------------------

    def _verdict(self, attempt: Attempt, code: int) -> Next | End:
        """After a failure: waits for the leader's request; decides locally where the control plane is away."""
        self._enter(WAITING, attempt)
        told, began = self._journal.told, monotonic()
        deadline = began + self.settings.job.verdict_timeout
        while monotonic() < deadline:
            if number := self.loop.asked_to_end:
                return End(code, f"ended by {number.name} to the launcher", asked=True)
            if self.nodes.several and self._poller.over:
                self._journal.speaks = False
                return End(code, f"the run is over: {self._poller.over}")
            if self._poller.last.without:
                return self._left_out(attempt)
            while self.loop.requests:
                if (after := self._answer(attempt, self.loop.requests.popleft(), code)) is not None:
                    return after
            if not self.nodes.several and not self._leader_may_know(told, began):  # one of several decides nothing alone
                return self._decide(code)
            self._adopt(attempt)
            self._turn(_LOOK)
        return End(code, f"no verdict within {self.settings.job.verdict_timeout:g} s")

    def _leader_may_know(self, told: int, since: float) -> bool:
        """Whether somebody may still decide: the control plane answers, and takes what we had to tell, too (its disk may be full)."""
        patience = self.settings.job.control_timeout
        heard = self._poller.silent_for() <= patience
        return heard and (self._journal.delivered >= told or monotonic() - since <= patience)

    def _answer(self, attempt: Attempt, request: Request, code: int) -> Next | End | None:
        if why := self._refusal(attempt, request):
            self._journal.progress(attempt.start.attempt, request, "refused", why)
            return None
        if request.kind == CAPTURE.name:
            self._journal.progress(attempt.start.attempt, request, "refused", "the attempt has ended")
            return None
        self._journal.progress(attempt.start.attempt, request, "accepted", request.reason)
        if request.kind == RESTART_RUN.name:
            return self._follow(request, attempt, code)
        self._journal.progress(attempt.start.attempt, request, "done", "the launcher ends")
        return End(code, request.reason or "no restart is due", asked=request.kind == STOP_RUN.name)

    def _decide(self, code: int) -> Next | End:
        verdict = decide(self._failures, self._restarts, monotonic(), self.settings.job.max_restarts_per_hour)
        _log.warning("control plane away: decided here", restart=verdict.restart, reason=verdict.reason)
        if not verdict.restart:
            return End(code, f"control plane away; not restarted: {verdict.reason}")
        self._restarts.append(monotonic())
        return Next(self._mint(self.launch + 1, f"control plane away; {verdict.reason}"))

    def _follow(self, request: Request, attempt: Attempt, code: int) -> Next | End:
        """The attempt that `request` names; of several nodes the one that is issued once all have stopped."""
        self._restarts.append(monotonic())
        if self.nodes.several:
            return self._meeting.next(request, attempt.start.attempt, Search(self.checkpoints), code)
        self._journal.attempt_issued(request.new_attempt)
        return Next(Issued(request.new_attempt, request.launch), request)

    # --- all the time -----------------------------------------------------------------------------

    def _turn(self, seconds: float) -> None:
        try:
            self.loop.turn(seconds)
        except Exception:  # noqa: BLE001 - the catch-all of this process's one loop: a defect in watching must not end what is watched
            _log.exception("watching failed; the command goes on")
            time.sleep(_LOOK)
        self._adopt(self.loop.attempt)
        if self.loop.attempt:
            self._enter(self.state)

    def _enter(self, state: str, attempt: Attempt | None = None) -> None:
        """What the next call to the control plane says."""
        self.state = state
        if attempt := attempt or self.loop.attempt:
            self._standing.say(state, attempt.start.attempt, attempt.start.launch, ranks=attempt.summary)

    def _refusal(self, attempt: Attempt, request: Request) -> str:
        if not same_attempt(request.attempt, attempt.start.attempt, attempt.name):
            return f"it is for attempt {request.attempt}, {attempt.name} is here"
        return self._why_not(request)

    def _why_not(self, request: Request) -> str:
        if request.term < self._poller.term:
            self._poller.expect_again(request)
        return refusal(request, utcnow(), self._poller.term)

    @property
    def _launches(self) -> Path:
        return self.settings.state_dir / "launches"

    def _ship(self, printed: list[Printed]) -> None:
        if attempt := self.loop.attempt:
            self._journal.printed(attempt.name, printed, attempt.offset)
