"""How a transition follows another: the last one by `at` is the present, so each is later than the one before."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pipeline.records import Transition

T = TypeVar("T", bound=Transition)
_TICK = timedelta(microseconds=1)
LEADER = "leader"


def follow(last: T, new_state: str, reason: str, now: datetime, *, actor: str = LEADER, **changes: Any) -> T:
    """The transition from `last` to `new_state`, at `now` or, where the clock went back, just after `last`."""
    at = max(now, last.at + _TICK)
    return replace(last, old_state=last.new_state, new_state=new_state, reason=reason, actor=actor, at=at, **changes)
