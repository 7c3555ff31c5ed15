"""`surefoot up`: all parts on this machine as supervised child processes."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import structlog

from pipeline.errors import SettingsError, SurefootError
from pipeline.ownership import AlreadyOwned, own
from pipeline.secrets import own_ingest_token
from pipeline.settings import Settings
from surefoot.giving_way import give_way, session_gives_way
from surefoot.part_logs import cut, last_line, log_path
from surefoot.parts import Part, check_addresses, parts, server
from surefoot.signals import Signals

READY_SECONDS = 90.0
STOP_SECONDS = 10.0
FIRST_DELAY, LONGEST_DELAY, STEADY_SECONDS = 0.1, 5.0, 10.0
POLL_SECONDS = 0.1
CUT_SECONDS = 60.0
REFUSED = 2  # the exit code of a command that said in one line why it cannot go on

log = structlog.get_logger()


@dataclass(slots=True)
class Child:
    """A running part, and when it may be started again after it died."""

    part: Part
    process: subprocess.Popen[bytes]
    started: float
    delay: float = FIRST_DELAY
    due: float | None = None
    restarts: int = 0
    gives_way: bool = False  # its session does


@dataclass(slots=True)
class Stack:
    """The supervisor's state. `status` is the file that tells others the parts' pids."""

    settings: Settings
    away: Part | None = None  # the server that the parts use, until it is heard
    began: float = field(default_factory=time.monotonic)
    children: list[Child] = field(default_factory=list)
    waiting: list[Part] = field(default_factory=list)  # for their health
    warned: bool = False
    ready: bool = False
    cut_due: float = 0.0

    @property
    def status(self) -> Path:
        return self.settings.state_dir / "up.json"

    def add(self, part: Part) -> None:
        """Start a part of the stack."""
        self.children.append(Child(part, self.spawn(part), time.monotonic()))
        self.waiting.append(part)
        log.info("starting", part=part.name)

    def spawn(self, part: Part) -> subprocess.Popen[bytes]:
        """Start `part`, its output appended to its log file.

        -P keeps the current folder off the import path: a trainer's own `pipeline/` must not shadow ours.
        """
        argv = [sys.executable, "-P", "-m", "surefoot", "--parent", str(os.getpid()), part.name]
        with log_path(self.settings.state_dir, part.name).open("ab") as out:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def write_status(self) -> None:
        state = {
            "ready": self.ready,
            "pid": os.getpid(),
            "console": self.settings.console.link,
            "parts": {c.part.name: {"pid": c.process.pid, "restarts": c.restarts} for c in self.children},
        }
        fresh = self.status.with_suffix(".new")
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(self.status)

    def look_after(self, now: float) -> None:
        """Note who died, and start again who is due. A part that dies at once is started ever more seldom."""
        for child in self.children:
            child.gives_way = child.gives_way or session_gives_way(child.process.pid)
            if child.due is None and (code := child.process.poll()) is not None:
                if code == REFUSED and not self.ready:
                    why = last_line(self._log(child)).removeprefix("surefoot: ") or f"it ended with {REFUSED}"
                    raise SurefootError(f"{child.part.name} does not start: {why}")
                child.delay = FIRST_DELAY if now - child.started > STEADY_SECONDS else min(child.delay * 2, LONGEST_DELAY)
                child.due = now + child.delay
                log.warning("part died", part=child.part.name, exit=code, restart_in=child.delay, log=str(self._log(child)))
            if child.due is not None and now >= child.due:
                child.process, child.started, child.due, child.gives_way = self.spawn(child.part), now, None, False
                child.restarts += 1
                log.info("part restarted", part=child.part.name, pid=child.process.pid)
                self.write_status()

    def greet(self, now: float) -> None:
        """Say once that everything works: all parts, and the server they use. A server that does not answer is waited for, and told.

        Raises SurefootError where a part of ours takes too long.
        """
        self.waiting = [part for part in self.waiting if not part.healthy]
        if self.waiting:
            if now - self.began > READY_SECONDS:
                names = ", ".join(part.name for part in self.waiting)
                raise SurefootError(f"{names} did not become ready in {READY_SECONDS:.0f} s: see {self.settings.state_dir / 'logs'}")
            return
        if self.away and not self.away.healthy:
            if not self.warned:
                log.warning("the store does not answer; the parts wait for it", store=self.away.name)
            self.warned = True
            return
        self.ready = True
        self.write_status()
        log.info("ready", console=self.settings.console.link, seconds=round(now - self.began, 1))

    def cut_logs(self, now: float) -> None:
        """Once a minute: logs that have grown too long are cut."""
        if now < self.cut_due:
            return
        self.cut_due = now + CUT_SECONDS
        for child in self.children:
            if cut(self._log(child)):
                log.info("log cut, its end kept", log=f"{self._log(child)}.old")

    def _log(self, child: Child) -> Path:
        return log_path(self.settings.state_dir, child.part.name)

    def stop(self) -> None:
        """SIGTERM in reverse order of starting, so that nobody's source of rows goes first; SIGKILL to who stays."""
        for child in reversed(self.children):
            if child.process.poll() is None:
                child.process.terminate()
            try:
                child.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                log.warning("part did not stop, killed", part=child.part.name)
                child.process.kill()
                child.process.wait()
        self.status.unlink(missing_ok=True)


def serve(settings: Settings) -> int:
    """Run the stack until SIGTERM, SIGINT or SIGHUP; returns the exit code.

    Raises SettingsError where an address cannot be had or another `surefoot up` owns the state folder.
    """
    with Signals() as signals, _own(settings.state_dir):
        check_addresses(settings)
        give_way()
        stack = Stack(settings, away=server(settings))
        try:
            return _supervise(stack, signals)
        finally:
            stack.stop()


def _supervise(stack: Stack, signals: Signals) -> int:
    with suppress(OSError):  # ingest says why
        own_ingest_token(stack.settings)  # the agent begins beside ingest, and takes what is there
    for part in parts(stack.settings):
        if signals.number:
            return 0
        stack.add(part)
        if part.name == "store":  # the others ask it at once: give it the processor first
            _await_health(stack, part, signals)
    stack.write_status()
    while not signals.number:
        now = time.monotonic()
        stack.look_after(now)
        stack.cut_logs(now)
        if not stack.ready:
            stack.greet(now)
        signals.wait(POLL_SECONDS if stack.ready else 0.2)
    return 0


def _await_health(stack: Stack, part: Part, signals: Signals) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not part.healthy and not signals.wait(POLL_SECONDS) and time.monotonic() < deadline:
        stack.look_after(time.monotonic())


def _own(state_dir: Path) -> IO[str]:
    """Hold the state folder until it is closed: two stacks over one store would both decide."""
    try:
        (state_dir / "logs").mkdir(parents=True, exist_ok=True)
        return own(state_dir / "up.lock")
    except AlreadyOwned as e:
        raise SettingsError(f"another `surefoot up` owns {state_dir}: stop it, or set state_dir in the settings") from e
    except OSError as e:
        raise SettingsError(f"cannot use the state folder {state_dir}: {e.strerror}; set state_dir in the settings") from e
