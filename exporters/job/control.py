"""The launcher's side of the control contract: a long poll that is also its sign of life, and what it may be asked.

GET /v1/control?run=&node=&attempt=&launch=&state=&ranks=&wait=&seen=&nodes=&address=&waited=&resume=&instance=

A launcher that must not take part is answered with 409 and the reason: another one is heard under its name, or the run is begun otherwise.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import requests
import structlog
from urllib3.exceptions import HTTPError

from exporters.sources.web import why
from pipeline.catalog.actions import CAPTURE, END_RUN, RESTART_RUN, STOP_RUN
from pipeline.catalog.runs import FINISHING, STARTING, Others
from pipeline.clock import from_micros, monotonic
from pipeline.errors import ControlRefused, ControlUnavailable, InputError

_WAIT: Final = 1.0  # seconds that a call is held open: the pace of the sign of life
_PAUSE: Final = 0.25  # after a call that failed
_LEAST: Final = 0.05  # between two calls that were answered at once
_ANSWER_LIMIT: Final = 1 << 20
_SEEN: Final = 50  # ids that are named as seen
_REASON_LIMIT: Final = 300  # characters of a refusal
_OTHERWISE: Final = 9  # google.rpc FAILED_PRECONDITION: the run is begun otherwise, which waiting does not change

KINDS: Final = frozenset(k.name for k in (RESTART_RUN, CAPTURE, STOP_RUN, END_RUN))
_ANSWERS: Final = "control plane answers again"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Request:
    """What the leader asks of this launcher."""

    id: str
    kind: str
    attempt: str
    term: int
    deadline: datetime | None = None
    new_attempt: str = ""
    launch: int = 0
    grace: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Issued:
    """The attempt that this launcher is to start; of several nodes all, by node rank, the first one's address, and where they resume."""

    attempt: str
    launch: int
    nodes: tuple[str, ...] = ()
    master: str = ""
    resume: str = ""

    def speaks(self, node: str) -> bool:
        """Whether the launcher on `node` speaks for the attempt and its run."""
        return not self.nodes or self.nodes[0] == node


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call brought."""

    term: int
    issued: Issued | None = None
    requests: tuple[Request, ...] = ()
    end: str = ""  # why the run is over
    without: str = ""  # the attempt that goes on without us
    others: Others | None = None  # told to one that is finishing, once it is known
    adopted: Issued | None = None  # our attempt, which we had begun by ourselves, as the leader has taken it over


@dataclass(frozen=True, slots=True)
class Situation:
    """What a call says of this launcher; `pipeline.records.Beat` tells the rest. `waits_since` is monotonic."""

    attempt: str
    launch: int
    state: str  # one of pipeline/catalog/runs.py
    ranks: str  # "0:alive:4711,1:exit:-9"
    nodes: str = ""
    address: str = ""
    resume: str = ""
    waits_since: float | None = None

    @property
    def begun(self) -> bool:
        """Whether something was started here."""
        return bool(self.attempt) or self.state != STARTING


def parse_answer(body: bytes) -> Answer:
    """The answer in a JSON body. Raises InputError naming what is wrong."""
    try:
        given = json.loads(body)
        issued, others = given.get("attempt"), given.get("others")
        return Answer(
            int(given["term"]),
            _issued(issued) if issued else None,
            tuple(_request(r) for r in given.get("requests") or ()),
            str(given.get("end") or ""),
            str(given.get("without") or ""),
            Others(int(others["finished"]), int(others["unfinished"])) if others else None,
            _issued(given["adopted"]) if given.get("adopted") else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as e:
        raise InputError(f"the control plane's answer cannot be used: {type(e).__name__}: {e}") from e


def _issued(given: dict[str, Any]) -> Issued:
    nodes = tuple(str(node) for node in given.get("nodes") or ())
    return Issued(_text(given, "id"), int(given["launch"]), nodes, str(given.get("master") or ""), str(given.get("resume") or ""))


def _request(given: dict[str, Any]) -> Request:
    deadline = given.get("deadline_us")
    return Request(
        _text(given, "id"),
        _text(given, "kind"),
        str(given.get("attempt") or ""),
        int(given["term"]),
        from_micros(int(deadline)) if deadline else None,
        str(given.get("new_attempt") or ""),
        int(given.get("launch") or 0),
        float(given.get("grace") or 0.0),
        str(given.get("reason") or ""),
    )


def _text(given: dict[str, Any], name: str) -> str:
    if not isinstance(given[name], str) or not given[name]:
        raise ValueError(f"{name} must be text")
    return str(given[name])


def error_of(status: int, body: bytes, url: str) -> ControlRefused | ControlUnavailable:
    """The error that an answer other than 200 stands for, with its reason as one line. What asking later may mend is no refusal."""
    code = None
    try:
        told = json.loads(body)
        reason, code = str(told["message"]), told.get("code")
    except (ValueError, TypeError, KeyError, AttributeError):
        reason = body[:_REASON_LIMIT].decode(errors="replace")
    reason = "".join(c for c in " ".join(reason.split()) if c.isprintable())[:_REASON_LIMIT]
    if status == HTTPStatus.CONFLICT and reason:
        return ControlRefused(reason, taken=True, passing=code != _OTHERWISE)
    said = f"{url} answered {status}" + (f": {reason}" if reason else "")
    passing = status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return ControlRefused(said, taken=False) if 400 <= status < 500 and not passing else ControlUnavailable(said)


def cause_of(error: Exception) -> str:
    """What kept a call from being answered, in a few words."""
    return str(error) if isinstance(error, InputError) else why(error)


def same_attempt(asked: str, base: str, inner: str) -> bool:
    """Whether a request for the attempt `asked` means ours: `base`, or the inner restart `inner` of it that runs now."""
    return asked in ("", base, inner)


def refusal(request: Request, now: datetime, term: int) -> str:
    """Why `request` must not be carried out; "" where it may. `term` is the highest term seen so far."""
    if request.kind not in KINDS:
        return f"unknown kind of request {request.kind!r}"
    if request.term < term:
        return f"term {request.term} is over, {term} was seen"
    if request.deadline and now > request.deadline:
        return f"its deadline passed {(now - request.deadline).total_seconds():.1f} s ago"
    if request.kind == RESTART_RUN.name and not (request.new_attempt and request.launch > 0):
        return "it names no new attempt"
    return ""


@dataclass(slots=True)
class Client:
    """One connection to the control plane."""

    endpoint: str
    token: str
    run: str
    node: str
    instance: str = field(default_factory=lambda: uuid4().hex)  # of this process: what tells two under one name apart
    _session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self._session.trust_env = False  # no proxy, no .netrc: the token goes to ingest alone
        self._session.headers["Authorization"] = f"Bearer {self.token}"

    def again(self) -> "Client":
        """The same over a connection of its own, for another thread."""
        return Client(self.endpoint, self.token, self.run, self.node, self.instance)

    def poll(self, situation: Situation, seen: Collection[str], wait: float) -> Answer:
        """Asks once, held open for up to `wait` seconds. Raises ControlRefused where we are not taken, else ControlUnavailable."""
        query = {
            "run": self.run,
            "node": self.node,
            "attempt": situation.attempt,
            "launch": str(situation.launch),
            "state": situation.state,
            "ranks": situation.ranks,
            "wait": f"{wait:g}",
            "seen": ",".join(seen),
            "nodes": situation.nodes,
            "address": situation.address,
            "resume": situation.resume,
            "instance": self.instance,
            "waited": "0" if situation.waits_since is None else f"{monotonic() - situation.waits_since:.3f}",
        }
        url = f"{self.endpoint}/v1/control"
        try:
            with self._session.get(url, params=query, timeout=(1.0, wait + 2.0), allow_redirects=False, stream=True) as response:
                body = response.raw.read(_ANSWER_LIMIT, decode_content=True)
                if response.status_code != 200:
                    raise error_of(response.status_code, body, url)
                return parse_answer(body)
        except (requests.RequestException, HTTPError, OSError, InputError) as e:
            raise ControlUnavailable(f"{self.endpoint}: {cause_of(e)}") from e


class Poller:
    """Polls in a thread until `close`; each thing asked for is given to `deliver` once. Never raises.

    A call is held open for at most half of `patience` seconds, after which the launcher would take it for silence.
    """

    def __init__(
        self, client: Client, situation: Callable[[], Situation], deliver: Callable[[Request | Issued], None], patience: float
    ) -> None:
        self.term = 0  # the highest one seen
        self._failing_since: float | None = None  # when the first call was begun of those that failed since the last answer
        self.last = Answer(0)
        self.heard = False  # whether there was an answer at all
        self.open = False  # the run was heard to go on: its end, when it comes, is this run's and not an earlier one's
        self.taken = ""  # why another launcher counts and we do not, from when that is answered until we are let in
        self.barred = False  # waiting for that is no help
        self.refused = False  # the last answer was that it wants nothing of us, as for a wrong token
        self._client = client
        self._wait = min(_WAIT, patience / 2)
        self._situation = situation
        self._deliver = deliver
        self._seen: list[str] = []
        self._delivered: set[tuple[str, int]] = set()  # (id, term)
        self._said = _ANSWERS
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begins to poll."""
        self._thread.start()

    def silent_for(self) -> float:
        """Seconds that the control plane has not answered. 0 while no call failed: where we did not run, it is not to blame."""
        since = self._failing_since
        return 0.0 if since is None else monotonic() - since

    def expect_again(self, request: Request) -> None:
        """`request` was refused for its old term: a leader may issue it again, with the same id and its own term."""
        if request.id in self._seen:
            self._seen.remove(request.id)

    @property
    def away(self) -> str:
        """Why the control plane is not heard, for a person."""
        return "the control plane refuses this launcher" if self.refused else "the control plane does not answer"

    @property
    def over(self) -> str:
        """Why the run is over, as last heard; "" while it goes on."""
        return self.last.end if self.open else ""

    def ask_now(self, tries: int = 1) -> None:
        """Asks once more in this very thread, beside the call that is held open: what was heard last may be old, as after a freeze."""
        for _ in range(tries):
            with contextlib.suppress(ControlRefused, ControlUnavailable):
                self._heed(self._client.again().poll(self._situation(), self._seen[-_SEEN:], 0.0))
                return

    def close(self) -> None:
        """Ends polling; a call that is held open ends by itself. The situation is told once more to one who was heard, and takes us."""
        self._stop.set()
        if self.heard and not self.taken:
            self.ask_now()

    def _run(self) -> None:
        while not self._stop.is_set():
            began, situation = monotonic(), self._situation()
            # the first call learns at once whether we are let in, and what one waits for that is finishing is no news
            wait = self._wait if self.heard and situation.state != FINISHING else 0.0
            try:
                answer = self._client.poll(situation, self._seen[-_SEEN:], wait)
            except (ControlRefused, ControlUnavailable) as e:
                self._failing_since = self._failing_since or began
                self._not_answered(e, situation)
                self._stop.wait(_PAUSE)
                continue
            self._failing_since, self.taken, self.refused = None, "", False
            self._say(_ANSWERS, "")
            least = _LEAST if self._take(answer) else _PAUSE
            self._stop.wait(max(0.0, least - (monotonic() - began)))

    def _take(self, answer: Answer) -> bool:
        """Delivers what is new; whether there was any."""
        self._heed(answer)
        new = [r for r in answer.requests if r.id not in self._seen and (r.id, r.term) not in self._delivered]
        for request in new:
            self._seen.append(request.id)
            self._delivered.add((request.id, request.term))
            self._deliver(request)
        if answer.issued:
            self._deliver(answer.issued)
        return bool(new or answer.issued)

    def _heed(self, answer: Answer) -> None:
        self.term, self.last, self.heard = max(self.term, answer.term), answer, True
        self.open = self.open or not answer.end

    def _not_answered(self, e: ControlRefused | ControlUnavailable, situation: Situation) -> None:
        self.refused = isinstance(e, ControlRefused) and not e.taken
        if not isinstance(e, ControlRefused):
            self._say("control plane does not answer; the run goes on", str(e))
        elif not e.taken:
            if self._client.token:  # one that has none was told so
                self._say("control plane refuses this launcher; the run goes on without it", str(e))
        else:
            self.barred, self.taken = not e.passing, str(e)
            if situation.begun:  # one that has not begun says it at the door
                self._say("control plane takes another launcher for this one; the command goes on", str(e))

    def _say(self, what: str, why: str) -> None:
        """Logs it where it is not what was logged last."""
        if what != self._said:
            self._said = what
            _log.warning(what, why=why)
