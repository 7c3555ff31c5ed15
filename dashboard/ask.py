"""Asking for something: the console writes a request row, the leader acts. The console itself never acts.

The intent id is fixed when the button is drawn: it follows from what is asked, of what, in which state,
and how often it was asked in that state. A double click, a rerun, a reconnect or a second browser
therefore gives the same row, and the store keeps it once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast
from uuid import NAMESPACE_URL, uuid5

import streamlit as st

from dashboard import read
from pipeline.clock import to_micros, utcnow
from pipeline.errors import SurefootError
from pipeline.records import Request

APPROVE, CANCEL, ACKNOWLEDGE = "approve", "cancel", "acknowledge"
ACTOR = "console"
ASK_AGAIN = 60.0  # seconds without an answer after which the button comes back


@dataclass(frozen=True, slots=True)
class Ask:
    """A button as it is drawn: what pressing it would ask, and since when the same has been asked already.

    Buttons are read by their value, never by a callback: Streamlit also calls back for a button that was not
    pressed when a click arrives from a page that is a drawing old, and a click on one would press its neighbour.
    """

    kind: str
    target: str
    intent: str
    asked_at: datetime | None


def prepare(kind: str, target: str, state_at: datetime, requests: Iterable[Request], now: datetime) -> Ask:
    """The button for `kind` on `target`, which has been in its present state since `state_at`.

    `asked_at` is set while an earlier press waits for the leader; the button comes back after ASK_AGAIN.
    """
    earlier = [r.at for r in requests if r.kind == kind and r.target == target and r.at >= state_at]
    waiting = [at for at in earlier if (now - at).total_seconds() < ASK_AGAIN]
    counted = len(earlier) - len(waiting)
    intent = uuid5(NAMESPACE_URL, f"surefoot:{kind}:{target}:{to_micros(state_at)}:{counted}").hex
    pressed = cast(datetime | None, st.session_state.get(_key(intent)))
    return Ask(kind, target, intent, max(waiting, default=pressed))


def press(ask: Ask) -> Ask:
    """Write the request; the button as it is after that. What went wrong is kept for `trouble`, never raised into the page."""
    at = utcnow()
    request = Request(intent=ask.intent, at=at, kind=ask.kind, target=ask.target, actor=ACTOR)
    try:
        read.store().insert([request], token=ask.intent)
    except SurefootError as e:
        st.session_state[_key(ask.intent) + ":trouble"] = str(e)
        return ask
    st.session_state.pop(_key(ask.intent) + ":trouble", None)
    st.session_state[_key(ask.intent)] = at
    return replace(ask, asked_at=at)


def trouble(ask: Ask) -> str:
    """Why the last press could not be written; "" where it could."""
    return str(st.session_state.get(_key(ask.intent) + ":trouble", ""))


def _key(intent: str) -> str:
    return f"asked:{intent}"
