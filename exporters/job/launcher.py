"""`surefoot run -- CMD`: starts a command as an attempt of a run, watches it, and starts it again when that is asked for."""

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from logging import INFO, WARNING
from pathlib import Path
from typing import Final
from urllib.parse import quote

import structlog

from exporters.job import boot
from exporters.job.attempt import Attempt, Start, begin
from exporters.job.control import Client, Issued, Poller, Request, Situation, refusal, same_attempt
from exporters.job.facts import Facts
from exporters.job.journal import Journal
from exporters.job.launches import attempt_id, check_run, default_run, last_launch, note_launch
from exporters.job.loop import Loop
from exporters.job.policy import Failure, decide
from exporters.job.procfs import Stat
from exporters.job.stop import stop
from exporters.job.surroundings import Search, environment, prepare_rings
from exporters.job.tee import Printed, Shipper
from exporters.job.tree import Tree, become_subreaper
from exporters.sending.leftovers import folder_of
from exporters.sending.sender import Sender, SenderStats
from pipeline.catalog.actions import CAPTURE, RESTART_RUN, STOP_RUN
from pipeline.clock import monotonic, utcnow
from pipeline.errors import InputError
from pipeline.secrets import ingest_token
from pipeline.settings import Settings

_SWEEP_GRACE: Final = 1.0  # seconds that processes left by an ended command get to end by themselves
_KILL_LIMIT: Final = 15.0  # seconds of killing, beyond the grace, after which a process counts as immortal
_LOOK: Final = 0.25  # seconds between two looks at the clock while waiting for a verdict
_FLUSH, _FLUSH_BLIND = 5.0, 2.0  # seconds for the last telemetry, and where ingest was away anyway
_log = structlog.get_logger()


def run(settings: Settings, command: Sequence[str], *, run_id: str | None = None, checkpoints: Path | None = None) -> int:
    """Runs `command` to its end, through restarts, and gives its exit code (128 + n where signal n ended it).

    Must be called in the main thread of a process that has nothing else to do. 127 where there is no such
    command. Raises InputError for an empty command or a run id that cannot be used.
    """
    if not command:
        raise InputError("nothing to run: give the command after --, as in `surefoot run -- torchrun train.py`")
    if shutil.which(command[0]) is None:
        sys.stderr.write(f"surefoot run: there is no command {command[0]!r}\n")
        return boot.NOT_FOUND
    run_name = run_id or default_run(command[0], utcnow())
    check_run(run_name)
    return Launcher(settings, list(command), run_name, checkpoints and checkpoints.absolute()).main()


@dataclass(frozen=True, slots=True)
class Next:
    """The attempt that follows, and the request that asked for it (None: local policy)."""

    issued: Issued
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The run is over."""

    code: int  # as subprocess gives it: negative for a signal
    reason: str
    asked: bool = False  # a person or a scheduler ended it

    @property
    def state(self) -> str:
        """What the run is now."""
        return "stopped" if self.asked else "failed" if self.code else "finished"


@dataclass(slots=True)
class Launcher:
    """One run from this node. `main` is the state machine: starting → running → (stopping | waiting) → running … → end."""

    settings: Settings
    command: list[str]
    run: str
    checkpoints: Path | None
    state: str = "starting"
    launch: int = 1
    loop: Loop = field(default_factory=Loop)
    _failures: list[Failure] = field(default_factory=list)
    _restarts: list[float] = field(default_factory=list)
    _hinted: bool = False
    _situation: Situation = field(init=False)
    _tree: Tree = field(init=False)
    _journal: Journal = field(init=False)
    _poller: Poller = field(init=False)
    _shipper: Shipper = field(init=False)
    _facts: Facts = field(init=False)

    def main(self) -> int:
        """Runs to the end; gives the exit code."""
        prepare_rings(self.settings.ring_dir)
        self.launch = last_launch(self._launches, self.run) + 1
        become_subreaper()
        self._tree = Tree()
        endpoint, token, node = self.settings.ingest.endpoint, _token(self.settings), self.settings.node
        sender = Sender(endpoint, token, node=node, service="surefoot.run", leftovers=folder_of(self.settings.ring_dir))
        self._journal = Journal(sender, self.run, node, self.command, str(self.checkpoints or ""))
        self._shipper = Shipper(self._ship, self.loop.inbox.put)
        self._facts = Facts(self._tree, self._journal.ran_with)
        self._situation = Situation("", self.launch, "starting", "")
        client = Client(endpoint, token, self.run, node)
        self._poller = Poller(client, lambda: self._situation, self.loop.inbox.put, self.settings.job.control_timeout)
        try:
            with self.loop.signals():
                end = self._run()
        finally:
            self._leave_nothing()
            self._facts.close()
            self._poller.close()
            sender.close(_FLUSH if sender.stats().reachable else _FLUSH_BLIND)
            self._tell_losses(sender.stats())
        return end.code if end.code >= 0 else 128 - end.code

    def _run(self) -> End:
        self._journal.run_is("started", "surefoot run")
        _log.info("run", run=self.run, console=f"{self.settings.console.link}/run?run={quote(self.run)}")
        self._poller.start()
        end: Next | End = self._first()
        while isinstance(end, Next):
            end = self._attempt(end)
        self._journal.run_is(end.state, end.reason, exit_code=end.code)
        _log.log(WARNING if end.state == "failed" else INFO, "run ended", run=self.run, exit=end.code, reason=end.reason)
        return end

    # --- starting ---------------------------------------------------------------------------------

    def _first(self) -> Next | End:
        """The first attempt: the one that the leader issues, or our own where nobody answers in time."""
        deadline = monotonic() + self.settings.job.control_timeout
        while monotonic() < deadline:
            if number := self.loop.asked_to_end:
                return End(-number, f"ended by {number.name} before it was started", asked=True)
            if issued := self.loop.issued:
                self._journal.attempt_issued(issued.attempt)
                return Next(issued)
            self._turn(deadline - monotonic())
        return Next(self._mint(self.launch, "no attempt was issued in time"))

    def _mint(self, launch: int, reason: str) -> Issued:
        issued = Issued(attempt_id(self.run, launch), launch)
        self._journal.attempt_is(issued.attempt, launch, "issued", f"issued by the launcher: {reason}")
        return issued

    def _begin(self, following: Next) -> Attempt | End:
        search = Search(self.checkpoints)
        while search.is_alive() and not self.loop.asked_to_end:
            self._turn(0.02)
        if number := self.loop.asked_to_end:
            why = f"ended by {number.name} before attempt {following.issued.attempt} was started"
            return self._not_begun(following, -number, why, asked=True)
        issued, request = following.issued, following.request
        self.launch = issued.launch
        note_launch(self._launches, self.run, issued.launch)
        resume = str(search.found or "")
        start = Start(
            issued.attempt,
            issued.launch,
            self.command,
            environment(self.settings, self.run, issued.attempt, self.checkpoints, resume),
            self.settings.ring_dir,
            resume,
            request.id if request else "",
        )
        try:
            attempt = self.loop.attempt = begin(start, self._tree, self._journal, self.loop.selector, self._shipper)
        except OSError as e:
            return self._not_begun(following, boot.NOT_EXECUTABLE, f"the command could not be started: {e.strerror}")
        self._facts.begin(start)
        self._enter("running")
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
            while self.loop.requests and attempt.code is None:
                if (after := self._serve(attempt, self.loop.requests.popleft())) is not None:
                    return after
        if attempt.scan():
            attempt.stop(grace=_SWEEP_GRACE, limit=_SWEEP_GRACE + _KILL_LIMIT, turn=self._turn)
        code = self._ended(attempt, attempt.reason)
        if number := self.loop.asked_to_end:
            return End(code, f"ended by {number.name} to the launcher", asked=True)
        if code == 0:
            return End(0, "the command ended well")
        return self._verdict(attempt, code)

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
        self._enter("stopping")
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
            return self._follow(request)
        self._journal.progress(start.attempt, request, "done", "the run was stopped")
        return End(code, request.reason or "stopped on request", asked=request.kind == STOP_RUN.name)

    def _ended(self, attempt: Attempt, reason: str, action: str = "") -> int:
        """Writes the end of the attempt, after the ends of its ranks; gives the command's exit code."""
        attempt.scan()
        while attempt.unsettled:
            self._turn(0.05)
        attempt.close()
        self._turn(0.0)  # torchrun's last words
        self.loop.attempt = None
        code = attempt.code
        if code is None:  # it does not die: in D state
            code = -9
        self._journal.attempt_is(attempt.start.attempt, attempt.start.launch, "ended", reason, exit_code=code, action=action)
        self._failures.append(Failure(monotonic(), attempt.at_start(self.settings.detect.start_limit)))
        _log.log(WARNING if code else INFO, "attempt ended", attempt=attempt.start.attempt, exit=code, reason=reason)
        return code

    # --- waiting ----------------------------------------------------------------------------------

    def _verdict(self, attempt: Attempt, code: int) -> Next | End:
        """After a failure: waits for the leader's request; decides locally where the control plane is away."""
        self._enter("waiting", attempt)
        told, began = self._journal.told, monotonic()
        deadline = began + self.settings.job.verdict_timeout
        while monotonic() < deadline:
            if number := self.loop.asked_to_end:
                return End(code, f"ended by {number.name} to the launcher", asked=True)
            while self.loop.requests:
                if (after := self._answer(attempt, self.loop.requests.popleft(), code)) is not None:
                    return after
            if not self._leader_may_know(told, began):
                return self._decide(code)
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
            return self._follow(request)
        self._journal.progress(attempt.start.attempt, request, "done", "the launcher ends")
        return End(code, request.reason or "no restart is due", asked=request.kind == STOP_RUN.name)

    def _decide(self, code: int) -> Next | End:
        verdict = decide(self._failures, self._restarts, monotonic(), self.settings.job.max_restarts_per_hour)
        _log.warning("control plane away: decided here", restart=verdict.restart, reason=verdict.reason)
        if not verdict.restart:
            return End(code, f"control plane away; not restarted: {verdict.reason}")
        self._restarts.append(monotonic())
        return Next(self._mint(self.launch + 1, f"control plane away; {verdict.reason}"))

    def _follow(self, request: Request) -> Next:
        self._restarts.append(monotonic())
        self._journal.attempt_issued(request.new_attempt)
        return Next(Issued(request.new_attempt, request.launch), request)

    # --- all the time -----------------------------------------------------------------------------

    def _turn(self, seconds: float) -> None:
        try:
            self.loop.turn(seconds)
        except Exception:  # noqa: BLE001 - the catch-all of this process's one loop: a defect in watching must not end what is watched
            _log.exception("watching failed; the command goes on")
            time.sleep(_LOOK)
        if self.loop.attempt:
            self._enter(self.state)

    def _enter(self, state: str, attempt: Attempt | None = None) -> None:
        """What the next call to the control plane says."""
        self.state = state
        if attempt := attempt or self.loop.attempt:
            self._situation = Situation(attempt.start.attempt, attempt.start.launch, state, attempt.summary)

    def _refusal(self, attempt: Attempt, request: Request) -> str:
        if not same_attempt(request.attempt, attempt.start.attempt, attempt.name):
            return f"it is for attempt {request.attempt}, {attempt.name} is here"
        if request.term < self._poller.term:
            self._poller.expect_again(request)
        return refusal(request, utcnow(), self._poller.term)

    @property
    def _launches(self) -> Path:
        return self.settings.state_dir / "launches"

    def _tell_losses(self, stats: SenderStats) -> None:
        if unread := self._shipper.dropped:
            _log.warning("output was shown but not kept: the command printed faster than it could be read along", bytes=unread)
        if stats.left:
            _log.warning("ingest is away: the run's last records wait on this node for its agent, or the next run", records=stats.left)
        if any(stats.dropped.values()):
            _log.warning("telemetry was not delivered", **stats.dropped)

    def _ship(self, printed: list[Printed]) -> None:
        if attempt := self.loop.attempt:
            self._journal.printed(attempt.name, printed, attempt.offset)

    def _leave_nothing(self) -> None:
        """Whatever went wrong here, in watching too: no process of the command outlives the launcher."""
        if attempt := self.loop.attempt:
            stop(partial(_left, attempt, self._tree), (), grace=0.0, limit=_KILL_LIMIT, turn=time.sleep)


def _left(attempt: Attempt, tree: Tree) -> list[Stat]:
    """The processes of the attempt that are left, its command waited for where it ended."""
    _ = attempt.code
    return tree.processes(attempt.process.pid)


def _token(settings: Settings) -> str:
    """The token for ingest; "" where it cannot be read or made: the command runs on unseen."""
    try:
        return ingest_token(settings)
    except OSError as e:
        _log.warning("no token for ingest: nothing can be sent", why=str(e))
        return ""
