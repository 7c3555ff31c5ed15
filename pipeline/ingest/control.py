"""The control contract: launchers ask what to do, are held until there is something, and show by asking that they live.

All that wait share one query of the store, at most every POLL seconds and only while somebody waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pipeline.catalog.runs import GONE, STARTING, STATES, Others, check_run, ended_well, meant, parse_nodes, unfit_node
from pipeline.clock import Clock, monotonic, to_micros, utcnow
from pipeline.errors import InputError, StoreError, StoreUnavailable
from pipeline.queries.control import Issued, IssuedAction, IssuedAttempt, Reader, issued
from pipeline.queries.control_rows import row_count
from pipeline.records import Beat

POLL: Final = 0.1  # seconds between two queries
READ_AGAIN: Final = 5.0  # seconds after which it is read though nothing seems to be new
MAX_WAIT: Final = 20.0  # seconds
BEAT_GAP: Final = 0.5  # seconds between two beats of a launcher that changes nothing
MAX_TEXT: Final = 256
MAX_PATH: Final = 4096
MAX_RANKS: Final = 1 << 20
LAUNCHERS: Final = 20_000  # whose last beats are remembered
FORGOTTEN: Final = 10.0  # seconds of silence after which nobody waits for a launcher's end
_KEYS: Final = frozenset(
    {"run", "node", "attempt", "launch", "state", "ranks", "wait", "seen", "nodes", "address", "waited", "resume", "instance"}
)

Ask = Callable[[Iterable[str]], Awaitable[Mapping[str, Issued]]]


@dataclass(frozen=True, slots=True)
class Question:
    """What a launcher says of itself, and how long it waits for an answer (seconds); `pipeline.records.Beat` tells the rest."""

    run: str
    node: str
    attempt: str
    launch: int
    state: str
    ranks: str
    wait: float
    seen: frozenset[str]
    nodes: str = ""
    address: str = ""
    waited: float = 0.0
    resume: str = ""
    instance: str = ""  # of the launcher's process: what tells two under one name apart

    @classmethod
    def from_query(cls, given: Mapping[str, str]) -> "Question":
        """The question in a URL's parameters. Raises InputError naming the one that is wrong; unknown ones are left alone."""
        text = {key: given.get(key, "") for key in _KEYS}
        for key in ("run", "node"):
            if not text[key]:
                raise InputError(f"parameter {key} is missing")
        check_run(text["run"])
        parse_nodes(text["nodes"])
        if why := unfit_node(text["node"]):
            raise InputError(f"parameter node {why}")
        if len(text["resume"]) > MAX_PATH:
            raise InputError(f"parameter resume is longer than {MAX_PATH}")
        for key in ("node", "attempt", "address", "instance"):
            if len(text[key]) > MAX_TEXT:
                raise InputError(f"parameter {key} is longer than {MAX_TEXT}")
        if text["state"] not in STATES:
            raise InputError(f"parameter state must be one of {', '.join(sorted(STATES))}")
        if len(text["ranks"]) > MAX_RANKS:
            raise InputError(f"parameter ranks is longer than {MAX_RANKS}")
        return cls(
            text["run"],
            text["node"].lower(),
            text["attempt"],
            int(_number("launch", text["launch"] or "0", 2**31)),
            text["state"],
            text["ranks"],
            min(_number("wait", text["wait"] or "0", 1e9), MAX_WAIT),
            frozenset(filter(None, text["seen"].split(","))),
            text["nodes"],
            text["address"],
            _number("waited", text["waited"] or "0", 1e9),
            text["resume"],
            text["instance"],
        )

    def beat(self, now: datetime) -> Beat:
        """This question as a sign of life."""
        return Beat(
            component="launcher",
            at=now,
            node=self.node,
            run=self.run,
            attempt=self.attempt,
            state=self.state,
            launch=self.launch,
            ranks=self.ranks,
            nodes=self.nodes,
            address=self.address,
            waited=self.waited,
            resume=self.resume,
        )


def _number(key: str, text: str, limit: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= limit:
        raise InputError(f"parameter {key} must be a number from 0 to {limit:g}")
    return number


@dataclass(frozen=True, slots=True)
class Answer:
    """What a launcher is to do. It is news where it names anything that the launcher has not seen."""

    term: int
    attempt: IssuedAttempt | None
    requests: tuple[IssuedAction, ...]
    end: str = ""  # why the run is over; who waits for others hears it with the ordinary answer
    without: str = ""  # the attempt that goes on without this launcher
    others: Others | None = None  # to one that is finishing; None: not known
    adopted: IssuedAttempt | None = None  # the attempt that its launchers had begun by themselves

    @property
    def news(self) -> bool:
        """Whether the launcher should hear it at once."""
        return self.attempt is not None or bool(self.requests)

    def to_json(self) -> dict[str, Any]:
        """As the contract writes it."""
        attempt = _attempt(self.attempt) if self.attempt else None
        requests = [_request(a) for a in self.requests]
        told = {"term": self.term, "attempt": attempt, "requests": requests, "end": self.end, "without": self.without}
        adopted = {"adopted": _attempt(self.adopted)} if self.adopted else {}
        return told | adopted | ({"others": asdict(self.others)} if self.others else {})


def _attempt(attempt: IssuedAttempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "launch": attempt.launch,
        "nodes": list(attempt.nodes),
        "master": attempt.master,
        "resume": attempt.resume,
    }


def _request(action: IssuedAction) -> dict[str, Any]:
    return {
        "id": action.id,
        "kind": action.kind,
        "attempt": action.attempt,
        "new_attempt": action.new_attempt,
        "launch": action.launch,
        "grace": action.grace,
        "deadline_us": to_micros(action.deadline) if action.deadline else None,
        "term": action.term,
        "reason": action.reason,
    }


def answer(question: Question, waiting: Issued, now: datetime) -> Answer:
    """What of all that waits for its run a launcher should hear."""
    requests = tuple(a for a in waiting.actions if a.id not in question.seen)
    attempts = [a for a in waiting.attempts if _is_for(question, a, now)]
    without = "" if attempts else next((a.id for a in reversed(waiting.attempts) if _is_without(question, a)), "")
    adopted = next((a for a in waiting.attempts if a.nodes and a.id == question.attempt and question.waited), None)
    return Answer(waiting.term, attempts[-1] if attempts else None, requests, waiting.end, without, adopted=adopted)


def _is_for(question: Question, attempt: IssuedAttempt, now: datetime) -> bool:
    """Whether a launcher is to start an attempt: it waits for one, of that launch or a later one, as what it asked for may be used up.

    One of several nodes waits for each of them until it ends: only who asked before it was issued was meant by it.
    """
    if question.attempt or attempt.launch < question.launch:
        return False
    if not attempt.nodes:
        return not parse_nodes(question.nodes).several
    return meant(question.node, now - timedelta(seconds=question.waited), attempt.nodes, attempt.issued_at)


def _is_without(question: Question, attempt: IssuedAttempt) -> bool:
    """Whether an attempt of several nodes goes on without a launcher: one that waits as a spare, or that was left out of it."""
    if not attempt.nodes:
        return False
    if question.attempt:
        return attempt.launch > question.launch and question.node not in attempt.nodes
    return question.state == STARTING or attempt.launch >= question.launch


@dataclass(slots=True)
class Beats:
    """Which questions become rows: changes at once, the rest at most every BEAT_GAP seconds a launcher. Since `began` (monotonic)."""

    began: float = field(default_factory=monotonic)
    last: dict[tuple[str, str], tuple[float, tuple[object, ...]]] = field(default_factory=dict)
    nodes: dict[str, set[str]] = field(default_factory=dict)  # by run those that are among `last`

    def due(self, question: Question, now: float) -> tuple[bool, bool]:
        """Whether to write a row, and whether it must be queryable at once: a state, attempt or rank changed."""
        key = (question.run, question.node)
        says = (question.state, question.attempt, question.launch, question.ranks, question.nodes, question.address, question.resume)
        at, said = self.last.get(key, (float("-inf"), ()))
        changed = says != said
        if not changed and now - at < BEAT_GAP:
            return False, False
        self.last.pop(key, None)
        self.last[key] = (now, says)
        self.nodes.setdefault(question.run, set()).add(question.node)
        if len(self.last) > LAUNCHERS:
            self._forget(next(iter(self.last)))
        return True, changed

    def _forget(self, key: tuple[str, str]) -> None:
        run, node = key
        del self.last[key]
        self.nodes[run].discard(node)
        if not self.nodes[run]:
            del self.nodes[run]

    def others(self, question: Question, now: float) -> Others | None:
        """Where the other launchers of an attempt stand; None while ingest has not been there for long enough to have heard them."""
        if now - self.began < FORGOTTEN:
            return None
        told = [self.last[question.run, node] for node in self.nodes.get(question.run, ()) if node != question.node]
        mine = [(now - at, str(says[0]), str(says[3])) for at, says in told if says[1] == question.attempt]
        going = [state for silent, state, ranks in mine if silent < FORGOTTEN and state != GONE and not ended_well(state, ranks)]
        return Others(sum(ended_well(state, ranks) for _, state, ranks in mine), len(going))


class Board:
    """What is issued, read from the store only when something was written since. For one thread at a time."""

    def __init__(self, store: Callable[[], Reader]) -> None:
        self._store = store
        self._known: dict[str, Issued] = {}
        self._rows = 0
        self._read_at = float("-inf")

    def read(self, runs: Iterable[str]) -> Mapping[str, Issued]:
        """What waits for each of `runs`. Raises StoreError."""
        wanted = set(runs)
        store = self._store()
        rows = row_count(store)  # before the reading: what comes in between is read twice, never missed
        now = monotonic()
        if rows != self._rows or not wanted <= self._known.keys() or now - self._read_at > READ_AGAIN:
            self._known = issued(store, wanted)
            self._rows, self._read_at = rows, now
        return self._known


@dataclass(slots=True, eq=False)
class _Waiter:
    question: Question
    heard: asyncio.Future[Answer]


class Control:
    """Holds questions until there is news. `ask` gives what is issued for some runs, or raises StoreError.

    For one event loop. `poll` is the least time between two queries (seconds).
    """

    def __init__(self, ask: Ask, poll: float = POLL, clock: Clock = utcnow) -> None:
        self._ask = ask
        self._clock = clock
        self._poll = poll
        self._waiters: set[_Waiter] = set()
        self._task: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")
        self._closing = False

    def close(self) -> None:
        """Lets all that wait go, with nothing: the process ends."""
        self._closing = True
        for waiter in self._waiters:
            _tell(waiter, Answer(0, None, ()))

    async def wait(self, question: Question) -> Answer:
        """The answer: as soon as there is news, at the latest after `question.wait` seconds and one query.

        Raises StoreError where the store cannot be asked.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + question.wait
        while True:
            waiter = _Waiter(question, loop.create_future())
            self._waiters.add(waiter)
            if self._task is None or self._task.done():
                self._task = loop.create_task(self._run())
            try:
                heard = await waiter.heard
            finally:
                self._waiters.discard(waiter)
            if heard.news or self._closing or loop.time() >= deadline:
                return heard

    async def _run(self) -> None:
        while self._waiters:
            await asyncio.sleep(max(0.0, self._asked_at + self._poll - monotonic()))
            self._asked_at = monotonic()
            asked = set(self._waiters)
            try:
                found = await self._ask({w.question.run for w in asked})
                for w in asked:
                    _tell(w, answer(w.question, found.get(w.question.run, Issued()), self._clock()))
            except StoreError as e:
                for w in asked:
                    _tell(w, e)
            finally:
                for w in asked:  # none is left hanging, whatever went wrong
                    _tell(w, StoreUnavailable("the store could not be asked"))
            await asyncio.sleep(0)  # those that have no news yet wait again


def _tell(waiter: _Waiter, heard: Answer | StoreError) -> None:
    if waiter.heard.done():  # its client has gone
        return
    if isinstance(heard, StoreError):
        waiter.heard.set_exception(heard)
    else:
        waiter.heard.set_result(heard)
