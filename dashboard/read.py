"""Reading the store for many browsers at once: each question is asked at most once in two seconds, whoever watches.

Nothing here raises when the store is away: a page gets what was read last, with its age, and says so.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from pipeline import settings as settings_module
from pipeline.clock import EPOCH, utcnow
from pipeline.errors import SurefootError
from pipeline.settings import Settings
from pipeline.store import Store

P = ParamSpec("P")
T = TypeVar("T")
Question = Callable[Concatenate[Store, P], list[T]]

TTL = 1.5  # seconds that an answer serves everybody; a page asks again every REFRESH
REFRESH = 2.0
PACE = 300  # seconds up to a run's last step over which its step time is the median
_KEPT = 500  # answers remembered for the time when the store is away


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with their age. `read_at`: when the store last gave them (None: never); `error`: why it does not answer now."""

    rows: list[Any]
    read_at: datetime | None
    error: str = ""
    failed_since: datetime | None = None


@dataclass(slots=True)
class _Memory:
    """The last good answer of each question, and since when the store has been away."""

    lock: Lock = field(default_factory=Lock)
    good: OrderedDict[Any, Answer] = field(default_factory=OrderedDict)
    failed_since: datetime | None = None
    again_at: datetime = EPOCH  # no question is sent before: a store that is away is tried once a refresh, not once a question
    error: str = ""

    def keep(self, key: Any, answer: Answer) -> Answer:
        with self.lock:
            self.failed_since = None
            self.good[key] = answer
            self.good.move_to_end(key)
            while len(self.good) > _KEPT:
                self.good.popitem(last=False)
        return answer

    def fail(self, error: SurefootError, now: datetime) -> None:
        with self.lock:
            self.failed_since = self.failed_since or now
            self.error = str(error)
            if not error.permanent:
                self.again_at = utcnow() + timedelta(seconds=TTL)

    def recall(self, key: Any) -> Answer:
        with self.lock:
            last = self.good.get(key, Answer([], None))
            return Answer(last.rows, last.read_at, self.error, self.failed_since)


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings of this process, read once."""
    return settings_module.load()


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The connection that all sessions share. Raises StoreUnavailable; a failure is not remembered."""
    return Store.connect(settings())


@st.cache_resource(show_spinner=False)
def _memory() -> _Memory:
    return _Memory()


@st.cache_data(ttl=timedelta(seconds=TTL), max_entries=_KEPT, show_spinner=False)
def _ask(
    name: str, args: tuple[Any, ...], options: tuple[tuple[str, Any], ...], steady: tuple[Any, ...], _question: Callable[..., list[Any]]
) -> Answer:
    key, now, memory = (name, steady), utcnow(), _memory()
    if now < memory.again_at:
        return memory.recall(key)
    try:
        return memory.keep(key, Answer(_question(store(), *args, **dict(options)), now))
    except SurefootError as e:
        memory.fail(e, now)
        return memory.recall(key)


@dataclass(slots=True)
class Sheet:
    """One drawing of a page: what it read, how old the oldest of it is, and whether the store answered."""

    now: datetime = field(default_factory=utcnow)
    answers: list[Answer] = field(default_factory=list)

    def rows(self, question: Callable[Concatenate[Store, P], list[T]], *args: P.args, **options: P.kwargs) -> list[T]:
        """What `question` answers; what it answered last where the store is away, and nothing where it never did."""
        steady = tuple(a for a in (*args, *options.items()) if not isinstance(a, datetime))  # windows move on, the question stays
        answer = _ask(question.__qualname__, args, tuple(options.items()), _hashable(steady), question)
        self.answers.append(answer)
        return answer.rows

    def ago(self, **back: float) -> datetime:
        """The time `back` before this drawing, on a grid of two seconds so that all sessions ask the same."""
        micros = int(REFRESH * 1e6)
        at = self.now - timedelta(**back)
        return at - timedelta(microseconds=(at - EPOCH) // timedelta(microseconds=1) % micros)

    @property
    def failed_since(self) -> datetime | None:
        """Since when the store has not answered; None where all of this drawing was answered."""
        return min((a.failed_since for a in self.answers if a.failed_since), default=None)

    @property
    def blank(self) -> bool:
        """Whether a part of this drawing was never read: what is missing then says nothing."""
        return any(a.read_at is None for a in self.answers)

    @property
    def error(self) -> str:
        """Why the store does not answer; "" where it does."""
        return next((a.error for a in self.answers if a.error), "")

    @property
    def read_at(self) -> datetime | None:
        """The age of the oldest part of this drawing; None where a part was never read."""
        ages = [a.read_at for a in self.answers]
        return None if not ages or None in ages else min(a for a in ages if a is not None)


def _hashable(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(v) if isinstance(v, list) else v for v in values)
