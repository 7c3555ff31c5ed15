"""Who has which place in a run: one launcher to a node's name, and one count of nodes for all of them.

A launcher holds its place by asking. It is free ASKS seconds after the last question, or RETURNS seconds after a call
broke off: who lives asks again sooner, also where it was ingest that was slow.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from pipeline.catalog.runs import ASKS, GONE, STARTING, Nodes, parse_nodes
from pipeline.errors import SurefootError
from pipeline.ingest.control import LAUNCHERS, Question

RETURNS: Final = 1.5  # seconds within which a living launcher asks again: its pause, and its patience with a connection
_Key = TypeVar("_Key", bound=Hashable)


class Taken(SurefootError):
    """Another launcher has the place, or the run is begun otherwise. `passing`: it may be free in some seconds."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing, self.permanent = passing, not passing


@dataclass(frozen=True, slots=True)
class Place:
    """Whose a node's name is in a run, until when (monotonic). `begun`: it has started something, which must go on."""

    instance: str
    run: str
    node: str
    nodes: Nodes
    begun: bool
    until: float


def place_of(question: Question, now: float) -> Place:
    """The place that a launcher asks for. A call that is held open for long holds it for as long, a last one not at all."""
    until = now if question.state == GONE else now + max(ASKS, question.wait + RETURNS)
    begun = bool(question.attempt) or question.state not in (STARTING, GONE)
    return Place(question.instance, question.run, question.node, parse_nodes(question.nodes), begun, until)


def refusal(wanted: Place, same: Place | None, last: Place | None, now: float) -> str:
    """Why a launcher must not have the place it asks for, and what to do; "" where it may.

    `same` is who had it last, `last` who was let in last to the run. Who has begun goes before who has not, and is
    never refused for how its run is begun elsewhere: nothing that was started is to be lost by this.
    """
    other = _heard(wanted, same, now)
    if other and (other.begun or not wanted.begun):
        return (
            f"another launcher of run {wanted.run} is heard under the node name {wanted.node}: "
            "give each node a name of its own (SUREFOOT_NODE), or end the other launcher"
        )
    if why := counted_otherwise(wanted, last, now):
        return why
    first = None if wanted.begun else _heard(wanted, last, now)
    if first and first.node != wanted.node and not wanted.nodes.several:
        return (
            f"run {wanted.run} takes one node, and its launcher on {first.node} is heard: "
            "end that one, or give each launcher --nodes with the number of nodes"
        )
    return ""


def counted_otherwise(wanted: Place, last: Place | None, now: float) -> str:
    """Why one that has begun nothing must not: the run goes with another count of nodes, whatever it waits for. "" where it may."""
    first = None if wanted.begun else _heard(wanted, last, now)
    if not first or first.nodes == wanted.nodes:
        return ""
    return (
        f"run {wanted.run} goes with --nodes {_count(first)} on {first.node}, and with --nodes {_count(wanted)} here: "
        "give all its launchers the same"
    )


class Places:
    """The places of all runs, as remembered since `born` (monotonic). For one thread."""

    def __init__(self, born: float) -> None:
        self._born = born
        self._places: dict[tuple[str, str], Place] = {}
        self._last: dict[str, Place] = {}

    def unsure_for(self, question: Question, now: float) -> float:
        """Seconds that a launcher which has begun nothing has to wait: those that run may not have been heard since we began."""
        return 0.0 if place_of(question, now).begun else max(0.0, self._born + RETURNS - now)

    def take(self, question: Question, now: float) -> Place:
        """Its place. Raises Taken with the reason."""
        wanted = place_of(question, now)
        key = (wanted.run, wanted.node)
        if why := refusal(wanted, self._places.get(key), self._last.get(wanted.run), now):
            raise Taken(why, passing=why != counted_otherwise(wanted, self._last.get(wanted.run), now))
        _keep(self._places, key, wanted)
        _keep(self._last, wanted.run, wanted)
        return wanted

    def broke_off(self, place: Place, now: float) -> None:
        """The call that took `place` was closed from the other side before it was answered: unless it asks again, that one is gone."""
        gone = replace(place, until=min(place.until, now + RETURNS))
        if self._places.get((place.run, place.node)) is place:
            self._places[place.run, place.node] = gone
        if self._last.get(place.run) is place:
            self._last[place.run] = gone


def _heard(wanted: Place, known: Place | None, now: float) -> Place | None:
    """Another launcher than the one that asks, where it is heard."""
    return known if known and known.until > now and known.instance != wanted.instance else None


def _count(place: Place) -> str:
    return str(place.nodes) or "1"


def _keep(known: dict[_Key, Place], key: _Key, place: Place) -> None:
    known.pop(key, None)
    known[key] = place
    if len(known) > LAUNCHERS:
        known.pop(next(iter(known)))
